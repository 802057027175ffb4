//! Certificates of connections that the daemon opens: to etcd, and to a collector of spans.

use std::error::Error;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// Certificates, as PEM text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The certificate authority of the server's certificates.
    pub(crate) ca_pem: String,
    /// The daemon's own certificate and key, when the server requires one.
    pub(crate) own_pem: Option<(String, String)>,
    /// The name in the server's certificate, when it is not the endpoint's.
    pub(crate) server_name: Option<String>,
}

impl Tls {
    /// # Errors
    /// What is wrong with the certificates.
    pub(crate) fn secure(&self, endpoint: Endpoint) -> Result<Endpoint, String> {
        self.check()?;
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.ca_pem));
        if let Some((cert, key)) = &self.own_pem {
            config = config.identity(Identity::from_pem(cert, key));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        endpoint.tls_config(config).map_err(|e| explain(&e))
    }

    /// A file without a certificate would be taken for an empty list of certificates.
    fn check(&self) -> Result<(), &'static str> {
        let certificate = |text: &str| text.contains("-----BEGIN CERTIFICATE-----");
        match &self.own_pem {
            _ if !certificate(&self.ca_pem) => Err("`ca_file` holds no certificate"),
            Some((cert, _)) if !certificate(cert) => Err("`cert_file` holds no certificate"),
            Some((_, key)) if !key.contains("PRIVATE KEY-----") => Err("`key_file` holds no private key"),
            _ => Ok(()),
        }
    }
}

fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERT: &str = "-----BEGIN CERTIFICATE-----";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----";

    #[test]
    fn files_without_what_they_should_hold_are_named() {
        let check = |ca: &str, own: Option<(&str, &str)>| {
            let own_pem = own.map(|(cert, key)| (cert.to_owned(), key.to_owned()));
            Tls { ca_pem: ca.to_owned(), own_pem, server_name: None }.check()
        };
        assert_eq!(check("", None), Err("`ca_file` holds no certificate"));
        assert_eq!(check(CERT, Some(("", KEY))), Err("`cert_file` holds no certificate"));
        assert_eq!(check(CERT, Some((CERT, CERT))), Err("`key_file` holds no private key"));
        assert_eq!((check(CERT, None), check(CERT, Some((CERT, KEY)))), (Ok(()), Ok(())));
    }
}
