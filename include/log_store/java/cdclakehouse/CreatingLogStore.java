package cdclakehouse;

import io.delta.storage.CloseableIterator;
import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Commits a version by creating its file where none is, in one step of the store. Whoever comes second is told.
 * Delta's own stores look first and write then, which lets two drivers win the same version.
 */
abstract class CreatingLogStore extends HadoopFileSystemLogStore {

    CreatingLogStore(Configuration conf) {
        super(conf);
    }

    /** Throws {@link FileAlreadyExistsException} when there is a file; never leaves half of one. */
    abstract void create(Path path, byte[] content, Configuration conf) throws IOException;

    abstract void replace(Path path, byte[] content, Configuration conf) throws IOException;

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
            throws IOException {
        byte[] content = (String.join("\n", (Iterable<String>) () -> actions) + "\n").getBytes(StandardCharsets.UTF_8);
        if (overwrite) {
            replace(path, content, conf);
            return;
        }
        try {
            create(path, content, conf);
        } catch (FileAlreadyExistsException taken) {
            // The answer to our first request may have been lost, and its repetition met our own file.
            // A commit names its transaction, so no other writer's file has the same content.
            if (!holds(path, new String(content, StandardCharsets.UTF_8), conf)) {
                throw taken;
            }
        }
    }

    private boolean holds(Path path, String content, Configuration conf) throws IOException {
        StringBuilder found = new StringBuilder();
        try (CloseableIterator<String> lines = read(path, conf)) {
            while (lines.hasNext()) {
                found.append(lines.next()).append('\n');
            }
        }
        return found.toString().equals(content);
    }
}
