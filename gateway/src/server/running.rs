//! A server that runs: where it listens, its tasks, and how all of it ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::warn;

use super::serve::{self, Purpose, Sent, Tasks};
use super::url_of;

/// One server. Dropping it ends it at once, whatever it is doing.
#[derive(Debug)]
pub(crate) struct Running {
    addr: SocketAddr,
    admin_addr: Option<SocketAddr>,
    tasks: Arc<Tasks>,
    _stop_on_drop: DropGuard,
}

/// What it listens with, before anybody is accepted.
#[derive(Debug)]
pub(crate) struct Listeners {
    traffic: TcpListener,
    operations: Option<TcpListener>,
}

impl Running {
    /// Listens for requests, and on a port of their own for operations, if they are to
    /// have one. Whoever comes waits until [`accept`](Self::accept).
    ///
    /// # Errors
    /// An address is not free.
    pub(crate) fn listen(
        requests: SocketAddr,
        operations: Option<SocketAddr>,
    ) -> io::Result<(Self, Listeners)> {
        let traffic = serve::listen(requests)?;
        let operations = operations.map(serve::listen).transpose()?;
        let tasks = Arc::new(Tasks::default());
        let running = Self {
            addr: traffic.local_addr()?,
            admin_addr: operations
                .as_ref()
                .map(TcpListener::local_addr)
                .transpose()?,
            _stop_on_drop: tasks.stop.clone().drop_guard(),
            tasks,
        };
        let listeners = Listeners {
            traffic,
            operations,
        };
        Ok((running, listeners))
    }

    /// Accepts connections from now on, and has `traffic` answer requests, told the
    /// client's address, and `operations` those that come on a port of their own. A
    /// client may be `patience` slow.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(crate) fn accept<F, B, G, C>(
        &self,
        listeners: Listeners,
        patience: Duration,
        traffic: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
        operations: impl Fn(Request<Incoming>) -> G + Clone + Send + Sync + 'static,
    ) where
        F: Future<Output = Response<B>> + Send + 'static,
        G: Future<Output = Response<C>> + Send + 'static,
        B: Sent,
        C: Sent,
    {
        let tasks = &self.tasks;
        tasks.all.spawn(serve::accept(
            listeners.traffic,
            Purpose::Traffic,
            patience,
            traffic,
            Arc::clone(tasks),
        ));
        if let Some(listener) = listeners.operations {
            tasks.all.spawn(serve::accept(
                listener,
                Purpose::Operations,
                patience,
                move |request, _| operations(request),
                Arc::clone(tasks),
            ));
        }
    }

    /// Runs a task beside it, until it is stopped.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.tasks.stop.clone();
        self.tasks.all.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where its routes for operations are, if they have a port of their own.
    pub(crate) fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin_addr
    }

    /// Where to send requests to, from this machine.
    pub(crate) fn url(&self) -> String {
        url_of(self.addr)
    }

    /// Cancelled once [`drain`](Self::drain) begins.
    pub(crate) fn draining(&self) -> CancellationToken {
        self.tasks.drain.clone()
    }

    /// Has connections finish what they have begun and take nothing new. Whether all
    /// that were there ended within `time`; the log says if they did not. Cancel safe.
    pub(crate) async fn drain(&self, time: Duration) -> bool {
        self.tasks.drain.cancel();
        self.tasks.old.close();
        let drained = self.drained(time).await;
        if !drained {
            warn!(
                connections = self.tasks.old.len(),
                "time is up: cutting off what is left"
            );
        }
        drained
    }

    /// Waits for the rest of those connections, `time` at most. Whether all ended. Cancel
    /// safe.
    pub(crate) async fn drained(&self, time: Duration) -> bool {
        timeout(time, self.tasks.old.wait()).await.is_ok()
    }

    /// Ends everything, and returns once it has. Dropping the future does not undo it.
    pub(crate) async fn stop(self) {
        self.tasks.stop.cancel();
        self.tasks.all.close();
        self.tasks.all.wait().await;
    }
}
