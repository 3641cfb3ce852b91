package cdclakehouse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.UUID;

/** Brings files and folders of a local disk onto the disk itself, so that a loss of power cannot take them back. */
final class DurableFiles {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String Z85 =
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    private static final int UUID_CHARACTERS = 20;

    private DurableFiles() {}

    static void write(Path path, byte[] content) throws IOException {
        try (FileChannel file =
                FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer rest = ByteBuffer.wrap(content);
            while (rest.hasRemaining()) {
                file.write(rest);
            }
            file.force(true);
        }
    }

    /** Of a file or of a folder; whoever wrote it: the system knows its pages by the file, not by the writer. */
    static void sync(Path path) throws IOException {
        try (FileChannel opened = FileChannel.open(path, StandardOpenOption.READ)) {
            opened.force(true);
        }
    }

    /**
     * What a commit names: data files with the size that it says, deletion vectors, and their folders. A file that is
     * gone or cut refuses the commit. Files that were there before and only get other deletion vectors are left alone.
     */
    static void syncNamed(byte[] commit, Path table) throws IOException {
        Set<String> removed = new HashSet<>();
        Set<Path> folders = new LinkedHashSet<>();
        String[] lines = new String(commit, StandardCharsets.UTF_8).split("\n");
        for (String line : lines) {
            if (line.startsWith("{\"remove\"")) {
                removed.add(JSON.readTree(line).path("remove").path("path").asText());
            }
        }
        for (String line : lines) {
            if (line.startsWith("{\"add\"") || line.startsWith("{\"cdc\"")) {
                JsonNode action = JSON.readTree(line).elements().next();
                if (!removed.contains(action.path("path").asText())) {
                    syncData(local(action.path("path").asText(), table), action.path("size").asLong(), folders);
                }
                syncVector(action.path("deletionVector"), table, folders);
            }
        }
        for (Path folder : folders) {
            sync(folder);
        }
    }

    /** The checkpoint that `_last_checkpoint` is about to name. */
    static void syncCheckpoint(byte[] pointer, Path log) throws IOException {
        JsonNode version = JSON.readTree(pointer).path("version");
        if (version.isIntegralNumber()) {
            String pattern = String.format("%020d.checkpoint*", version.asLong());
            try (DirectoryStream<Path> files = Files.newDirectoryStream(log, pattern)) {
                for (Path file : files) {
                    sync(file);
                }
            }
        }
    }

    /** A new table is an entry of a folder, which may be new itself. Folders of others need not be readable. */
    static void syncAncestors(Path folder) throws IOException {
        for (Path each = folder; each != null && Files.isReadable(each); each = each.getParent()) {
            sync(each);
        }
    }

    private static void syncData(Path file, long size, Set<Path> folders) throws IOException {
        if (file != null) {
            if (Files.size(file) != size) {
                throw new IOException(file + " has " + Files.size(file) + " bytes, its commit says " + size);
            }
            sync(file);
            folders.add(file.getParent());
        }
    }

    private static void syncVector(JsonNode vector, Path table, Set<Path> folders) throws IOException {
        String kind = vector.path("storageType").asText(), place = vector.path("pathOrInlineDv").asText();
        Path file = null;
        if (kind.equals("u")) {
            int prefix = place.length() - UUID_CHARACTERS;
            String name = "deletion_vector_" + uuid(place.substring(prefix)) + ".bin";
            file = table.resolve(place.substring(0, prefix)).resolve(name);
        } else if (kind.equals("p")) {
            file = local(place, table);
        }
        if (file != null) {
            sync(file);
            folders.add(file.getParent());
        }
    }

    /** Null for what does not lie on this disk. */
    private static Path local(String path, Path table) {
        URI uri = URI.create(path);
        if (uri.getScheme() == null) {
            return table.resolve(uri.getPath());
        }
        return uri.getScheme().equals("file") ? Path.of(uri.getPath()) : null;
    }

    private static UUID uuid(String text) {
        ByteBuffer bytes = ByteBuffer.allocate(16);
        for (int start = 0; start < UUID_CHARACTERS; start += 5) {
            long word = 0;
            for (char digit : text.substring(start, start + 5).toCharArray()) {
                word = word * 85 + Z85.indexOf(digit);
            }
            bytes.putInt((int) word);
        }
        return new UUID(bytes.getLong(0), bytes.getLong(8));
    }
}
