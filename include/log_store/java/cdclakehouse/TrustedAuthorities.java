package cdclakehouse;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/**
 * Lets this JVM trust one more authority beside those that Java knows. S3A's client reads the store of the process each
 * time it is made; others take the default context.
 */
final class TrustedAuthorities {

    private static final char[] NOTHING_SECRET = "certificates".toCharArray();

    private static String added = "";

    private TrustedAuthorities() {
    }

    /** A second call with the same text changes nothing. */
    static synchronized void add(String pem) {
        if (pem.equals(added)) {
            return;
        }
        try {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, NOTHING_SECRET);
            int number = 0;
            for (X509Certificate known : known()) {
                store.setCertificateEntry("known-" + number++, known);
            }
            byte[] text = pem.getBytes(StandardCharsets.US_ASCII);
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            for (Certificate added : factory.generateCertificates(new ByteArrayInputStream(text))) {
                store.setCertificateEntry("added-" + number++, added);
            }
            writeForThisProcess(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers(store), null);
            SSLContext.setDefault(context);
            added = pem;
        } catch (GeneralSecurityException | IOException problem) {
            throw new IllegalStateException("the ca_pem of the storage connection cannot be used", problem);
        }
    }

    private static void writeForThisProcess(KeyStore store) throws GeneralSecurityException, IOException {
        Path file = Files.createTempFile("cdc_lakehouse_", ".p12"); // for this user only
        file.toFile().deleteOnExit();
        try (OutputStream stream = Files.newOutputStream(file)) {
            store.store(stream, NOTHING_SECRET);
        }
        System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
        System.setProperty("javax.net.ssl.trustStorePassword", new String(NOTHING_SECRET));
        System.setProperty("javax.net.ssl.trustStore", file.toString());
    }

    private static X509Certificate[] known() throws GeneralSecurityException {
        for (TrustManager manager : managers(null)) {
            if (manager instanceof X509TrustManager) {
                return ((X509TrustManager) manager).getAcceptedIssuers();
            }
        }
        return new X509Certificate[0];
    }

    private static TrustManager[] managers(KeyStore store) throws GeneralSecurityException {
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }
}
