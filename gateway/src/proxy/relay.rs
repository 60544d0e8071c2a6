//! Response bodies that pass through, and hold what the request occupies.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use thiserror::Error;
use tokio::time::{Sleep, sleep};

use super::first_token::{Event, Watcher};
use super::headers::remove_admission;
use super::request_body::{len, with_read};
use super::silence::Silence;

/// How long an engine may keep its side open after the last event.
pub const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// What a request occupies while its response is on the way. Dropping it gives
/// everything back.
pub trait Hold: Unpin {
    /// The first token has come: what is held for waiting goes back.
    fn first_token(&mut self);

    /// A piece of the body has come from the engine.
    fn passed(&mut self, piece: &[u8]) {
        let _ = piece;
    }

    /// The response is over, `whole` or broken off, just before this is dropped.
    /// A client that leaves is not told of here.
    fn ended(&mut self, whole: bool) {
        let _ = whole;
    }
}

/// Why a response was cut.
#[derive(Debug, Error)]
pub enum RelayError {
    /// The engine's side failed.
    #[error("the engine's response broke off")]
    Engine(#[from] hyper::Error),
    /// The engine sent nothing for too long.
    #[error("the engine sent nothing for {0:?}")]
    Idle(Duration),
    /// The client did not take what the engine sent.
    #[error("the client took nothing for {0:?}")]
    Unread(Duration),
}

impl RelayError {
    /// The status that tells a client, if it has not been told another.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Engine(_) => StatusCode::BAD_GATEWAY,
            Self::Idle(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Unread(_) => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

/// A response body on its way to the client, byte for byte, with what the
/// request holds. That is given back at the last event, at the end of the body,
/// at an error, and when this is dropped, which is what happens when the client
/// leaves; dropping it before its end also closes the engine's connection.
#[derive(Debug)]
pub struct Relay<H> {
    /// `None` once this is over.
    engine: Option<Incoming>,
    /// A frame that was asked for before its time.
    early: Option<Frame<Bytes>>,
    watcher: Watcher,
    hold: Option<H>,
    /// How long the engine may say nothing.
    silence: Option<Silence>,
    /// What the engine has left to close its side, from the last event on.
    grace: Option<Pin<Box<Sleep>>>,
}

impl<H: Hold> Relay<H> {
    /// Relays `engine`, seen by `watcher`, until it ends or is silent for too long
    /// while the client reads. Its head has just come.
    #[must_use]
    pub fn new(
        engine: Incoming,
        watcher: Watcher,
        hold: Option<H>,
        silence: Option<Silence>,
    ) -> Self {
        let mut relay = Self {
            engine: Some(engine),
            early: None,
            watcher,
            hold,
            silence,
            grace: None,
        };
        relay.heard();
        relay
    }

    /// Looks at what has come behind the engine's head, without waiting for it,
    /// while the client can still be told that it makes no sense.
    ///
    /// # Errors
    /// When the body has failed already.
    pub async fn begin(&mut self) -> Result<(), RelayError> {
        let seen = poll_fn(|cx| Poll::Ready(Pin::new(&mut *self).poll_frame(cx))).await;
        if let Poll::Ready(Some(frame)) = seen {
            self.early = Some(frame?);
        }
        Ok(())
    }

    /// Waits for the first piece of the body, which is then passed on as ever:
    /// until it has come, the client can be told another status, or the request
    /// sent elsewhere. An end without any piece is none.
    ///
    /// # Errors
    /// When the body fails before.
    pub async fn first_piece(&mut self) -> Result<(), RelayError> {
        if self.early.is_none() {
            let first = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await;
            self.early = first.transpose()?;
        }
        Ok(())
    }

    fn saw(&mut self, data: &[u8]) {
        if let Some(hold) = &mut self.hold {
            hold.passed(data);
        }
        match self.watcher.feed(data) {
            Some(Event::FirstToken) => {
                if let Some(hold) = &mut self.hold {
                    hold.first_token();
                }
            }
            Some(Event::End) => {
                self.release(true);
                // Not prolonged by what may still come.
                self.grace = Some(Box::pin(sleep(CLOSE_GRACE)));
            }
            None => {}
        }
    }

    fn heard(&mut self) {
        if let Some(silence) = &mut self.silence {
            silence.heard();
        }
    }

    fn finish(&mut self, whole: bool) {
        self.release(whole);
        self.engine = None;
    }

    fn release(&mut self, whole: bool) {
        if let Some(mut hold) = self.hold.take() {
            hold.ended(whole);
        }
    }
}

impl<H: Hold> Body for Relay<H> {
    type Data = Bytes;
    type Error = RelayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayError>>> {
        let this = &mut *self;
        if let Some(frame) = this.early.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(engine) = &mut this.engine else {
            return Poll::Ready(None);
        };
        match Pin::new(engine).poll_frame(cx) {
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(data) = frame.data_ref() {
                    this.saw(data);
                }
                if let Some(trailers) = frame.trailers_mut() {
                    remove_admission(trailers);
                }
                this.heard();
                // Nobody asks for more behind an end that is known.
                if this.engine.as_ref().is_some_and(Incoming::is_end_stream) {
                    this.release(true);
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Poll::Ready(Some(Err(error))) => {
                this.finish(false);
                // After the last event there is nothing left to lose.
                let lost = this.grace.is_none().then(|| Err(error.into()));
                return Poll::Ready(lost);
            }
            Poll::Ready(None) => {
                this.finish(true);
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        let lost = match (&mut this.grace, &mut this.silence) {
            (Some(grace), _) => {
                ready!(grace.as_mut().poll(cx));
                None
            }
            (None, Some(silence)) => Some(ready!(silence.poll_too_long(cx))),
            (None, None) => return Poll::Pending,
        };
        this.finish(lost.is_none());
        Poll::Ready(lost.map(|time| Err(RelayError::Idle(time))))
    }

    fn is_end_stream(&self) -> bool {
        self.early.is_none() && self.engine.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self
            .engine
            .as_ref()
            .map_or(Some(0), |engine| engine.size_hint().exact());
        with_read(rest, self.early.as_ref().map_or(0, len))
    }
}
