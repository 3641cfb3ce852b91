package cdclakehouse;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** For local disks: a hard link to a finished file. The file system decides who wins. */
public final class ExclusiveLinkLogStore extends CreatingLogStore {

    public ExclusiveLinkLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    void create(Path path, byte[] content, Configuration conf) throws IOException {
        java.nio.file.Path finished = local(createTempPath(path));
        try {
            Files.write(finished, content);
            // Of a file of this name that somebody deleted: Hadoop would compare ours with it.
            Files.deleteIfExists(local(new Path(path.getParent(), "." + path.getName() + ".crc")));
            Files.createLink(local(path), finished);
        } finally {
            Files.deleteIfExists(finished);
        }
    }

    /** Hadoop writes these, with its checksums: tables of earlier releases have them. */
    @Override
    void replace(Path path, byte[] content, Configuration conf) throws IOException {
        String text = new String(content, StandardCharsets.UTF_8);
        writeWithRename(path, Arrays.asList(text.split("\n")).iterator(), true, conf);
    }

    private static java.nio.file.Path local(Path path) {
        return java.nio.file.Path.of(path.toUri().getPath());
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return true;
    }
}
