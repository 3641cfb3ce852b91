package cdclakehouse;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * For local disks: a hard link to a finished file. The file system decides who wins. When `create` returns, the version
 * and all that it names are on the disk.
 */
public final class ExclusiveLinkLogStore extends CreatingLogStore {

    private static final String FIRST = "00000000000000000000.json";
    private static final String POINTER = "_last_checkpoint";

    public ExclusiveLinkLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    void create(Path path, byte[] content, Configuration conf) throws IOException {
        java.nio.file.Path version = local(path), log = version.getParent();
        DurableFiles.syncNamed(content, log.getParent());
        java.nio.file.Path finished = local(createTempPath(path));
        try {
            DurableFiles.write(finished, content);
            // Of a file of this name that somebody deleted: Hadoop would compare ours with it.
            Files.deleteIfExists(local(new Path(path.getParent(), "." + path.getName() + ".crc")));
            Files.createLink(version, finished);
            DurableFiles.sync(log);
        } finally {
            Files.deleteIfExists(finished);
        }
        if (version.getFileName().toString().equals(FIRST)) {
            DurableFiles.syncAncestors(log.getParent());
        }
    }

    /** Hadoop writes these, with its checksums: tables of earlier releases have them. */
    @Override
    void replace(Path path, byte[] content, Configuration conf) throws IOException {
        String text = new String(content, StandardCharsets.UTF_8);
        java.nio.file.Path replaced = local(path);
        if (path.getName().equals(POINTER)) {
            DurableFiles.syncCheckpoint(content, replaced.getParent());
        }
        writeWithRename(path, Arrays.asList(text.split("\n")).iterator(), true, conf);
        DurableFiles.sync(replaced);
        DurableFiles.sync(replaced.getParent());
    }

    private static java.nio.file.Path local(Path path) {
        return java.nio.file.Path.of(path.toUri().getPath());
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return true;
    }
}
