//! Credentials, permissions and TLS, as NATS has them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tidegate_gateway::cluster::NatsConfig;
use tidegate_gateway::load::Outcome;
use tokio::time::{Duration, sleep};

use super::nats::{Nats, at, free_port};
use super::support::{engine, frontend, until, worker};

fn user(nats: &Nats, name: &str, password: &str) -> NatsConfig {
    let url = format!("nats://{name}:{password}@127.0.0.1:{}", nats.port);
    NatsConfig::new(vec![url.parse().unwrap()])
}

/// The least that CLUSTER.md gives each side is enough, and a worker cannot speak for
/// another.
#[tokio::test(flavor = "multi_thread")]
async fn each_side_needs_no_more_than_is_written() {
    let users = r#"
authorization { users: [
  { user: one, password: secret, permissions: {
      publish: ["tidegate.v1.load.one", "$KV.tidegate_members.one", "$JS.API.STREAM.INFO.KV_tidegate_members", "$JS.API.STREAM.CREATE.KV_tidegate_members",
                "$JS.API.DIRECT.GET.KV_tidegate_members.>", "$JS.API.STREAM.MSG.GET.KV_tidegate_members"]
      subscribe: ["_INBOX.>"] } }
  { user: frontend, password: secret, permissions: {
      publish: ["$JS.API.STREAM.INFO.KV_tidegate_members",
                "$JS.API.STREAM.CREATE.KV_tidegate_members", "$JS.API.CONSUMER.CREATE.KV_tidegate_members.>",
                "$JS.API.CONSUMER.CREATE.KV_tidegate_members", "$JS.API.CONSUMER.DELETE.KV_tidegate_members.>"]
      subscribe: ["_INBOX.>", "$KV.tidegate_members.*", "tidegate.v1.load.*"] } }
] }
"#;
    let nats = Nats::with(users, true).await;
    let engine = engine().await;
    let one = worker(&engine, user(&nats, "one", "secret"), "one");
    let front = frontend(user(&nats, "frontend", "secret"));
    front.has(1).await;
    let later = frontend(user(&nats, "frontend", "secret"));
    later.has(1).await;
    let held = one.gate().try_admit_owned(None).unwrap();
    until("its load is heard", async || front.running() == Some(1)).await;
    drop(held);
    // As somebody else it is not let in, or not heard.
    let wrong = worker(&engine, user(&nats, "one", "guess"), "guess");
    let other = worker(&engine, user(&nats, "one", "secret"), "other");
    sleep(Duration::from_millis(500)).await;
    assert_eq!(front.ids(), [0]);
    assert_eq!(front.send(3).await, Outcome::Ok);
    drop((wrong, other));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_certificates_on_both_sides() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let lines = r#"tls { cert_file: "@/server.pem", key_file: "@/server.key", ca_file: "@/ca.pem", verify: true }"#;
    let mut nats = Nats::prepared(lines, true, free_port());
    std::fs::write(nats.folder.join("ca.pem"), ca.pem()).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let own = CertificateParams::new(names).unwrap();
        let certificate = own.signed_by(&key, &ca).unwrap();
        let file = |end: &str| nats.folder.join(format!("{name}.{end}"));
        std::fs::write(file("pem"), certificate.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
    }
    nats.begin().await;
    let file = |name: &str| nats.folder.join(name);
    let secured = || NatsConfig {
        ca: Some(file("ca.pem")),
        identity: Some((file("client.pem"), file("client.key"))),
        ..at(nats.port)
    };
    let engine = engine().await;
    let front = frontend(secured());
    let one = worker(&engine, secured(), "one");
    front.has(1).await;
    // Without a certificate of its own, or with others trusted, nobody gets in.
    let nameless = NatsConfig {
        identity: None,
        ..secured()
    };
    let others = NatsConfig {
        ca: Some(file("client.pem")),
        ..secured()
    };
    let (two, three) = (
        worker(&engine, nameless, "two"),
        worker(&engine, others, "three"),
    );
    sleep(Duration::from_millis(500)).await;
    assert_eq!(front.ids(), [0]);
    drop((one, two, three));
}

/// A JWT as NATS has them, signed by `by`.
fn jwt(by: &nkeys::KeyPair, subject: &nkeys::KeyPair, nats: Value) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let claims = part(
        json!({ "jti": "x", "iat": 1_700_000_000, "iss": by.public_key(),
        "name": "tidegate", "sub": subject.public_key(), "nats": nats }),
    );
    let said = format!("{head}.{claims}");
    let signature = by.sign(said.as_bytes()).unwrap();
    format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn credentials(folder: &Path, jwt: &str, user: &nkeys::KeyPair) -> NatsConfig {
    let file = folder.join("user.creds");
    let said = format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().unwrap()
    );
    std::fs::write(&file, said).unwrap();
    NatsConfig {
        credentials: Some(file),
        ..at(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credentials_file_opens_the_door() {
    let (operator, account) = (
        nkeys::KeyPair::new_operator(),
        nkeys::KeyPair::new_account(),
    );
    let user = nkeys::KeyPair::new_user();
    let limits = json!({ "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1,
        "data": -1, "payload": -1, "wildcards": true });
    let of_operator = jwt(
        &operator,
        &operator,
        json!({ "type": "operator", "version": 2 }),
    );
    let of_account = json!({ "type": "account", "version": 2, "limits": limits });
    let of_account = jwt(&operator, &account, of_account);
    let of_user = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    let of_user = jwt(&account, &user, of_user);
    let lines = format!(
        "operator: {of_operator}\nresolver: MEMORY\nresolver_preload {{ {}: {of_account} }}\n",
        account.public_key()
    );
    let nats = Nats::with(&lines, false).await;
    let opened = || NatsConfig {
        servers: at(nats.port).servers,
        ..credentials(&nats.folder, &of_user, &user)
    };
    let engine = engine().await;
    let front = frontend(opened());
    let one = worker(&engine, opened(), "one");
    front.has(1).await;
    let stranger = frontend(nats.config());
    sleep(Duration::from_millis(300)).await;
    assert_eq!(stranger.counts("connected").await, 0.0);
    drop(one);
}
