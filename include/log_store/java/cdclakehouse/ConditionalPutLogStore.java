package cdclakehouse;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;

/** For s3a: a put with If-None-Match. The bucket decides who wins. */
public final class ConditionalPutLogStore extends CreatingLogStore {

    public ConditionalPutLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    void create(Path path, byte[] content, Configuration conf) throws IOException {
        FSDataOutputStreamBuilder<?, ?> builder = path.getFileSystem(conf).createFile(path).create();
        // "must": a file system that does not know the option has to refuse instead of overwriting.
        builder.must("fs.option.create.conditional.overwrite", true);
        try {
            put(builder.build(), content);
        } catch (RemoteFileChangedException | org.apache.hadoop.fs.FileAlreadyExistsException taken) {
            throw (IOException) new FileAlreadyExistsException(path.toString()).initCause(taken);
        }
    }

    @Override
    void replace(Path path, byte[] content, Configuration conf) throws IOException {
        put(path.getFileSystem(conf).create(path, true), content);
    }

    /** The object appears when the stream is closed; after a failure it may not appear at all. */
    private static void put(FSDataOutputStream stream, byte[] content) throws IOException {
        try {
            stream.write(content);
        } catch (IOException | RuntimeException problem) {
            stream.abort();
            throw problem;
        }
        stream.close();
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return false;
    }
}
