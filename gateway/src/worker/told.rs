//! The body of an answer that began before its request was admitted: news, then the
//! engine's stream, or an error event.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::Either;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::slot::Slot;
use crate::proxy::paced::Paced;
use crate::proxy::relay::Relay;

/// The engine's answer passing through.
pub type Passing = Either<Relay<Slot>, Paced<Slot>>;

type Failure = Box<dyn Error + Send + Sync>;

/// What comes next in such a body.
#[derive(Debug)]
pub(super) enum Step {
    /// Something of our own.
    Said(Bytes),
    /// The engine's stream, which is the last.
    Passes(Box<Passing>),
}

/// A body of [`Step`]s that a task brings about. Dropping it, which is what happens
/// when the client leaves, ends the task wherever it is.
#[derive(Debug)]
pub struct Told {
    steps: mpsc::Receiver<Step>,
    passing: Option<Box<Passing>>,
    _task: AbortOnDropHandle<()>,
}

impl Told {
    pub(super) fn new(steps: mpsc::Receiver<Step>, task: AbortOnDropHandle<()>) -> Self {
        Self {
            steps,
            passing: None,
            _task: task,
        }
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = &mut *self;
        loop {
            if let Some(passing) = &mut this.passing {
                return Pin::new(passing).poll_frame(cx);
            }
            match ready!(this.steps.poll_recv(cx)) {
                Some(Step::Said(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Passes(passing)) => this.passing = Some(passing),
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.passing
            .as_ref()
            .is_some_and(|passing| passing.is_end_stream())
    }
}
