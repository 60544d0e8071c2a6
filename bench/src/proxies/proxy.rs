//! Which proxies there are, and how each is started.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::client::Client;
use super::kind::Kind;
use super::process::Process;

/// How long a proxy may take until it answers.
const START_TIME: Duration = Duration::from_secs(20);

/// Requests that a proxy lets through at once. More than are ever sent.
const LIMIT: u32 = 256;

/// A proxy that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    /// None: the client asks the backend itself.
    Direct,
    /// nginx as a reverse proxy with `limit_conn`, with keep-alive on both sides.
    Nginx,
    /// `tidegate worker`: a new connection to the backend for each request.
    Worker,
    /// `tidegate worker` with `--keep-engine-connections`.
    WorkerKept,
    /// `tidegate frontend`.
    Frontend,
}

impl Make {
    /// As the table calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Direct => "no proxy",
            Self::Nginx => "nginx",
            Self::Worker => "tidegate worker",
            Self::WorkerKept => "tidegate worker --keep-engine-connections",
            Self::Frontend => "tidegate frontend",
        }
    }
}

/// Where the programs are, and with how many threads they work.
#[derive(Clone, Debug)]
pub struct Programs {
    /// nginx.
    pub nginx: PathBuf,
    /// tidegate.
    pub tidegate: PathBuf,
    /// Worker processes of nginx, worker threads of tidegate.
    pub threads: u32,
    /// Further arguments of `tidegate frontend`.
    pub frontend_args: Vec<String>,
    /// Whether they may write to standard error.
    pub loud: bool,
    /// A folder for nginx's files.
    pub folder: PathBuf,
}

/// A proxy that has started and answers.
#[derive(Debug)]
pub struct Proxy {
    /// Which.
    pub make: Make,
    /// Where it listens.
    pub address: SocketAddr,
    process: Option<Process>,
}

impl Proxy {
    /// Starts a proxy before `backend`, and waits until its answers are the backend's.
    ///
    /// # Errors
    /// It does not start, or its answers are not.
    pub async fn start(make: Make, programs: &Programs, backend: SocketAddr) -> Result<Self> {
        if make == Make::Direct {
            return Ok(Self {
                make,
                address: backend,
                process: None,
            });
        }
        let address = free_port()?;
        let mut command = match make {
            Make::Nginx => nginx(programs, address, backend)?,
            _ => tidegate(&make, programs, address, backend),
        };
        let process = Process::start(make.name(), &mut command, programs.loud)?;
        let mut proxy = Self {
            make,
            address,
            process: Some(process),
        };
        proxy.answers().await?;
        proxy.says_what(backend).await?;
        Ok(proxy)
    }

    /// Processor time that it has taken so far; none for no proxy.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn processor_time(&self) -> Result<Duration> {
        let process = self.process.as_ref();
        process.map_or(Ok(Duration::ZERO), Process::processor_time)
    }

    async fn answers(&mut self) -> Result<()> {
        let start = Instant::now();
        loop {
            if let Some(process) = &mut self.process {
                process.check()?;
            }
            let asked = Client::new(self.address).ask(Kind::Whole).await;
            let Err(why) = asked else { return Ok(()) };
            if start.elapsed() > START_TIME {
                return Err(why.context(format!("{} does not answer", self.make.name())));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Checks it before it is timed: its answers are the backend's, byte for byte, and
    /// the client's connection is kept.
    async fn says_what(&self, backend: SocketAddr) -> Result<()> {
        let name = self.make.name();
        let mut client = Client::new(self.address);
        for kind in Kind::ALL {
            let (own, direct) = (
                client.ask(kind).await?,
                Client::new(backend).ask(kind).await?,
            );
            ensure!(own.body == direct.body, "{name} changes answers, {kind}");
        }
        ensure!(client.connections == 1, "{name} does not keep connections");
        Ok(())
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn tidegate(make: &Make, programs: &Programs, listen: SocketAddr, backend: SocketAddr) -> Command {
    let mut command = Command::new(&programs.tidegate);
    let backend = format!("http://{backend}");
    if *make == Make::Frontend {
        command.args(["frontend", "--worker", &backend]);
        command.args(&programs.frontend_args);
    } else {
        let limit = LIMIT.to_string();
        command.args(["worker", "--engine-url", &backend, "--max-num-seqs", &limit]);
    }
    if *make == Make::WorkerKept {
        command.arg("--keep-engine-connections");
    }
    command.args(["--listen", &listen.to_string()]);
    command.env("TOKIO_WORKER_THREADS", programs.threads.to_string());
    command.env("RUST_LOG", "warn");
    command
}

fn nginx(programs: &Programs, listen: SocketAddr, backend: SocketAddr) -> Result<Command> {
    let folder = &programs.folder;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let file = folder.join("nginx.conf");
    fs::write(
        &file,
        configuration(programs.threads, listen, backend, folder),
    )?;
    let mut command = Command::new(&programs.nginx);
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    command.arg("-e").arg(folder.join("error.log"));
    let checked = command.get_program().to_owned();
    let said = Command::new(checked)
        .args(command.get_args())
        .arg("-t")
        .output()
        .with_context(|| {
            let nginx = programs.nginx.display();
            format!(
                "{nginx} cannot be run: `.ci/versus-nginx` fetches it, --nginx says where it is"
            )
        })?;
    if !said.status.success() {
        bail!(
            "nginx does not take {}: {}",
            file.display(),
            String::from_utf8_lossy(&said.stderr)
        );
    }
    Ok(command)
}

/// As someone who wants the most of it would set it up: no log, connections kept on
/// both sides for ever, a limit on requests in progress.
fn configuration(threads: u32, listen: SocketAddr, backend: SocketAddr, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "daemon off;
worker_processes {threads};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    tcp_nodelay on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    limit_conn_zone $server_name zone=engine:1m;
    upstream engine {{
        server {backend};
        keepalive 512;
        keepalive_requests 1000000000;
        keepalive_timeout 3600s;
    }}
    server {{
        listen {listen} backlog=4096;
        location / {{
            limit_conn engine {LIMIT};
            limit_conn_status 529;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_pass http://engine;
        }}
    }}
}}
"
    )
}
