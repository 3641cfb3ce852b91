package cdclakehouse;

import java.security.Provider;

/** By which Java finds the trust managers of {@link TrustedAuthorities} under the name of their algorithm. */
final class AuthoritiesProvider extends Provider {

    private static final long serialVersionUID = 1L;

    AuthoritiesProvider(String algorithm) {
        super(algorithm, "1", "the authorities that Java knows and one more");
        putService(new Service(this, "TrustManagerFactory", algorithm, TrustedAuthorities.class.getName(), null, null));
    }
}
