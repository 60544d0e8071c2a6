//! Pages of one or more servers, read now and then.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use thiserror::Error;
use tokio::time::Instant;

use crate::page::{History, Reading, Snapshot};
use crate::scrape::exposition;
use crate::scrape::page::{Fetch, PageError, PageUrl};

/// How long a page may take.
const TIME: Duration = Duration::from_secs(2);

/// Where `/metrics` is, of a server or spelled out.
const PATH: &str = "/metrics";

/// Why nothing is shown.
#[derive(Debug, Error)]
pub(super) enum WatchError {
    #[error(transparent)]
    Page(#[from] PageError),
    #[error("{0} is neither a worker's page nor a frontend's")]
    Other(String),
}

/// The servers, and what they have told.
#[derive(Debug)]
pub(super) struct Watch {
    pages: Vec<(String, Fetch)>,
    history: History,
    started: Instant,
}

impl Watch {
    /// Prepares; connects to nobody yet.
    pub(super) fn new(urls: &[PageUrl]) -> io::Result<Self> {
        let page = |url: &PageUrl| {
            let text = url.to_string();
            let told = text.trim_end_matches('/').ends_with(PATH);
            let url = if told { url.clone() } else { url.below(PATH) };
            Ok((url.to_string(), Fetch::new(url)?))
        };
        Ok(Self {
            pages: urls.iter().map(page).collect::<io::Result<_>>()?,
            history: History::default(),
            started: Instant::now(),
        })
    }

    /// Reads all of them. Those that fail spoil nothing of the others: they are told
    /// beside what these say. Cancelled, it has read nothing.
    pub(super) async fn read(&mut self) -> (Option<Snapshot>, Vec<WatchError>) {
        let texts = self.pages.iter().map(async |(url, page)| {
            let reading = Reading::of(&exposition::read(&page.text(TIME).await?));
            match reading.is_empty() {
                true => Err(WatchError::Other(url.clone())),
                false => Ok(reading),
            }
        });
        let read = join_all(texts).await;
        let (mut all, mut trouble) = (Reading::default(), Vec::new());
        for (at, read) in read.into_iter().enumerate() {
            match read {
                Ok(reading) => {
                    let several = self.pages.len() > 1;
                    all.gates.extend(reading.gates.into_iter().map(|mut gate| {
                        if several {
                            gate.worker = short(&self.pages[at].0);
                        }
                        gate
                    }));
                    all.front = all.front.or(reading.front);
                }
                Err(error) => trouble.push(error),
            }
        }
        let now = self.started.elapsed();
        let shown = (!all.is_empty()).then(|| self.history.observe(now, all, Vec::new()));
        (shown, trouble)
    }
}

/// The host and port of a page.
fn short(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_owned()
}
