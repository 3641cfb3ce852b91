package cdclakehouse;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.InvalidAlgorithmParameterException;
import java.security.KeyStore;
import java.security.KeyStoreException;
import java.security.NoSuchAlgorithmException;
import java.security.Security;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import javax.net.ssl.ManagerFactoryParameters;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.TrustManagerFactorySpi;
import javax.net.ssl.X509TrustManager;

/**
 * Lets this JVM trust one more authority beside those that Java knows: trust managers of its own, which are the default ones
 * from then on. Not the property javax.net.ssl.trustStore: Java reads its file again for each new client, and of several that
 * are made at the same moment some get the authorities from before the property was set.
 */
public final class TrustedAuthorities extends TrustManagerFactorySpi {

    private static final String ALGORITHM = "CdcLakehouse", PROPERTY = "ssl.TrustManagerFactory.algorithm";

    private static final String JAVAS_OWN = TrustManagerFactory.getDefaultAlgorithm();

    private static String pem = "";

    private static volatile KeyStore trusted;

    private final TrustManagerFactory factory;

    /** For the provider: each client that wants the default managers gets one. */
    public TrustedAuthorities() throws NoSuchAlgorithmException {
        factory = TrustManagerFactory.getInstance(JAVAS_OWN);
    }

    /** A second call with the same text changes nothing. */
    static synchronized void add(String text) {
        if (text.equals(pem)) {
            return;
        }
        try {
            trusted = knownAnd(text);
            Security.addProvider(new AuthoritiesProvider(ALGORITHM));
            Security.setProperty(PROPERTY, ALGORITHM);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, null, null);
            SSLContext.setDefault(context);
            pem = text;
        } catch (GeneralSecurityException | IOException problem) {
            throw new IllegalStateException("the ca_pem of the storage connection cannot be used", problem);
        }
    }

    /** A client that names its own authorities, as Kafka's does, gets those alone. */
    @Override
    protected void engineInit(KeyStore store) throws KeyStoreException {
        factory.init(store == null ? trusted : store);
    }

    @Override
    protected void engineInit(ManagerFactoryParameters parameters) throws InvalidAlgorithmParameterException {
        factory.init(parameters);
    }

    @Override
    protected TrustManager[] engineGetTrustManagers() {
        return factory.getTrustManagers();
    }

    private static KeyStore knownAnd(String text) throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        TrustManagerFactory known = TrustManagerFactory.getInstance(JAVAS_OWN);
        known.init((KeyStore) null);
        int number = 0;
        for (TrustManager manager : known.getTrustManagers()) {
            if (manager instanceof X509TrustManager) {
                for (X509Certificate issuer : ((X509TrustManager) manager).getAcceptedIssuers()) {
                    store.setCertificateEntry("known-" + number++, issuer);
                }
            }
        }
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        CertificateFactory certificates = CertificateFactory.getInstance("X.509");
        for (Certificate added : certificates.generateCertificates(new ByteArrayInputStream(bytes))) {
            store.setCertificateEntry("added-" + number++, added);
        }
        return store;
    }
}
