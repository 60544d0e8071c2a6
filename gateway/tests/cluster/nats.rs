//! A real `nats-server`, and a way to it that can be cut.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate_gateway::cluster::NatsConfig;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::support::until;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/install.sh");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/nats");

fn program() -> PathBuf {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let output = Command::new("sh").args([SCRIPT, FOLDER]).output();
        let output = output.map_err(|error| format!("sh does not run: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    });
    found
        .clone()
        .unwrap_or_else(|why| panic!("there is no NATS: {why}"))
}

/// A server on a port of its own, ended when dropped.
pub struct Nats {
    pub port: u16,
    pub folder: PathBuf,
    child: Option<Child>,
}

impl Nats {
    /// One that keeps members in JetStream.
    pub async fn start() -> Self {
        Self::with("", true).await
    }

    /// With more lines in its configuration, in which `@` stands for its folder.
    pub async fn with(lines: &str, jetstream: bool) -> Self {
        let mut nats = Self::prepared(lines, jetstream, free_port());
        nats.begin().await;
        nats
    }

    /// A folder with a configuration; not started yet.
    pub fn prepared(lines: &str, jetstream: bool, port: u16) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(FOLDER).join(format!("run-{}-{id}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let store = match jetstream {
            true => "jetstream { store_dir: \"@/store\", max_mem: 64MB, max_file: 64MB }\n",
            false => "",
        };
        let config = format!("host: 127.0.0.1\nport: {port}\n{store}{lines}");
        let config = config.replace('@', &folder.display().to_string());
        std::fs::write(folder.join("nats.conf"), config).expect("a file");
        Self {
            port,
            folder,
            child: None,
        }
    }

    /// Starts it, or starts it again where it was.
    pub async fn begin(&mut self) {
        let mut command = Command::new(program());
        command
            .arg("-c")
            .arg(self.folder.join("nats.conf"))
            .args(["-l".as_ref(), self.folder.join("log").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(command.spawn().expect("nats-server runs"));
        let port = self.port;
        until("NATS listens", async || {
            TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn config(&self) -> NatsConfig {
        at(self.port)
    }

    /// A client that says whatever a test wants.
    pub async fn client(&self) -> async_nats::Client {
        async_nats::connect(format!("127.0.0.1:{}", self.port))
            .await
            .unwrap()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How a server at this port is reached.
pub fn at(port: u16) -> NatsConfig {
    NatsConfig::new(vec![format!("nats://127.0.0.1:{port}").parse().unwrap()])
}

/// A port that nobody has at this moment.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[derive(Clone, Copy, PartialEq)]
enum Is {
    Open,
    /// Nothing passes, and nobody is told.
    Frozen,
    /// Connections are closed, and new ones too.
    Cut,
}

/// A way to a server.
pub struct Way {
    pub port: u16,
    is: watch::Sender<Is>,
}

impl Way {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (is, seen) = watch::channel(Is::Open);
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                tokio::spawn(pass(from, port, seen.clone()));
            }
        });
        Self { port: own, is }
    }

    pub fn open(&self) {
        self.is.send_replace(Is::Open);
    }

    pub fn freeze(&self) {
        self.is.send_replace(Is::Frozen);
    }

    pub fn cut(&self) {
        self.is.send_replace(Is::Cut);
    }
}

async fn pass(mut from: TcpStream, port: u16, mut is: watch::Receiver<Is>) {
    let Ok(mut to) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    loop {
        let now = *is.borrow_and_update();
        match now {
            Is::Cut => return,
            Is::Frozen => {
                if is.changed().await.is_err() {
                    return;
                }
            }
            Is::Open => tokio::select! {
                _ = copy_bidirectional(&mut from, &mut to) => return,
                changed = is.changed() => if changed.is_err() { return },
            },
        }
    }
}
