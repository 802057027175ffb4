//! TLS with client certificates, and etcd's own users.

use super::{Client, Server, with_etcd};
use crate::tls::Tls;
use cosched_cluster::store::StoreError;
use prost::Message;
use std::path::Path;
use std::process::{Command, Stdio};

fn openssl(dir: &Path, arguments: &str) {
    let done = Command::new("openssl").args(arguments.split(' ')).current_dir(dir).stderr(Stdio::null()).status();
    assert!(done.unwrap().success(), "openssl {arguments}");
}

/// A certificate authority, a server's and a client's certificate; and another authority, which is not trusted.
fn make_certificates(dir: &Path) {
    for signer in ["ca", "other"] {
        openssl(
            dir,
            &format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=cst-{signer} \
                 -keyout {signer}.key -out {signer}.pem"
            ),
        );
    }
    std::fs::write(dir.join("server.ext"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        .unwrap();
    std::fs::write(dir.join("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    for (name, signer, ext) in [("server", "ca", "server"), ("client", "ca", "client"), ("stranger", "other", "client")]
    {
        let new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        openssl(dir, &format!("{new} -subj /CN=cst-{name} -keyout {name}.key -out {name}.csr"));
        openssl(
            dir,
            &format!(
                "x509 -req -days 2 -in {name}.csr -CA {signer}.pem -CAkey {signer}.key -CAcreateserial \
                 -extfile {ext}.ext -out {name}.pem"
            ),
        );
    }
}

#[test]
fn certificates_open_the_door_and_nothing_else_does() {
    with_etcd(|| async {
        let dir = tempfile::Builder::new().prefix("cst-etcd-").tempdir().unwrap();
        make_certificates(dir.path());
        let file = |name: &str| dir.path().join(name).display().to_string();
        let text = |name: &str| std::fs::read_to_string(file(name)).unwrap();
        let tls = |ca: &str, own: Option<&str>| {
            let own_pem = own.map(|own| (text(&format!("{own}.pem")), text(&format!("{own}.key"))));
            Some(Tls { ca_pem: text(&format!("{ca}.pem")), own_pem, server_name: None })
        };
        let (right, stranger) = (tls("ca", Some("client")), tls("ca", Some("stranger")));
        let (none, other) = (tls("ca", None), tls("other", Some("client")));
        let arguments = vec![
            format!("--cert-file={}", file("server.pem")),
            format!("--key-file={}", file("server.key")),
            format!("--trusted-ca-file={}", file("ca.pem")),
            "--client-cert-auth".to_owned(),
        ];
        let server = Server::start_with("https", dir, arguments);
        let with = |tls: &Option<Tls>| super::EtcdConfig { tls: tls.clone(), ..server.config() };
        let mut client = Client::of(&with(&right)).await;
        client.put("a", "1").await.unwrap();
        assert_eq!(client.get("a").await, Ok(Some("1".to_owned())));
        for (why, tls) in [("no certificate", none), ("another signer's", stranger), ("not its server", other)] {
            let refused = Client::new(&with(&tls)).get("a").await;
            let clear = match &refused {
                Err(StoreError::Denied(text)) => text.contains("check `ca_file`"),
                Err(StoreError::Unavailable(text)) => why != "not its server" && text.contains("check `cert_file`"),
                _ => false,
            };
            assert!(clear, "{why}: {refused:?}");
        }
        let bad = Tls { ca_pem: "nonsense".to_owned(), ..Tls::default() };
        let (to, _from) = tokio::sync::mpsc::unbounded_channel();
        let refused = super::Etcd::new(&with(&Some(bad)), to);
        assert!(refused.unwrap_err().to_string().contains("have to be PEM"));
    });
}

#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    second: String,
}

/// Enables authentication, as an administrator does with etcdctl.
async fn enable_users(client: &Client) {
    for (path, name, second) in [
        ("/etcdserverpb.Auth/UserAdd", "root", "secret"),
        ("/etcdserverpb.Auth/UserAdd", "cosched", "word"),
        ("/etcdserverpb.Auth/RoleAdd", "root", ""),
        ("/etcdserverpb.Auth/UserGrantRole", "root", "root"),
        ("/etcdserverpb.Auth/AuthEnable", "", ""),
    ] {
        let ask = Named { name: name.to_owned(), second: second.to_owned() };
        let done: Result<super::super::proto::PutResponse, _> = client.etcd.wire.unary(path, ask).await;
        assert!(done.is_ok(), "{path}");
    }
}

#[test]
fn users_need_their_password_and_rights() {
    with_etcd(|| async {
        let dir = tempfile::Builder::new().prefix("cst-etcd-").tempdir().unwrap();
        let mut server = Server::start_with("http", dir, vec!["--bcrypt-cost=4".to_owned()]);
        let as_user = |server: &Server, name: &str, password: &str| {
            let user = Some((name.to_owned(), password.to_owned()));
            Client::new(&super::EtcdConfig { user, ..server.config() })
        };
        let mut open = Client::of(&server.config()).await;
        as_user(&server, "root", "secret").put("a", "1").await.unwrap();
        open.put("a", "2").await.unwrap();
        enable_users(&open).await;
        for (mut client, expected) in [
            (as_user(&server, "root", "wrong"), "check `user` and the password"),
            (as_user(&server, "nobody", "secret"), "check `user` and the password"),
            (as_user(&server, "cosched", "word"), "the user needs read and write rights"),
            (Client::new(&server.config()), "it asks for a user"),
        ] {
            let refused = client.get("a").await;
            assert!(matches!(&refused, Err(StoreError::Denied(why)) if why.contains(expected)), "{refused:?}");
        }
        let mut client = as_user(&server, "root", "secret");
        assert_eq!(client.get("a").await, Ok(Some("2".to_owned())));
        // A restarted server no longer knows its tokens.
        server.kill();
        server.restart();
        let mut tries = 0;
        while let Err(e) = client.put("a", "3").await {
            assert!(matches!(e, StoreError::Unavailable(_)), "{e:?}");
            tries += 1;
            assert!(tries < 50);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(client.get("a").await, Ok(Some("3".to_owned())));
    });
}
