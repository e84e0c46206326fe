use std::fs;
use std::path::PathBuf;

use async_trait::async_trait;
use formwork_core::{Fault, Time};
use formwork_wire::cassette::Recorder;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, SharedTransport, Transport};

/// A transport that writes what it recorded to a file when nobody uses it any more.
#[derive(Debug)]
pub(super) struct Tape {
    recorder: Recorder,
    path: PathBuf,
}

impl Tape {
    pub(super) fn new(inner: SharedTransport, path: PathBuf) -> Self {
        Self { recorder: Recorder::new(inner), path }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        // Nobody is left to be told by an error; a trace is all there is.
        if let Err(error) = fs::write(&self.path, self.recorder.cassette().to_json()) {
            tracing::error!(target: "formwork", "the cassette {} was not written: {error}", self.path.display());
        }
    }
}

#[async_trait]
impl Transport for Tape {
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault> {
        self.recorder.send(request, deadline).await
    }

    fn redact(&self, text: &str) -> String {
        self.recorder.redact(text)
    }

    fn now(&self) -> Time {
        self.recorder.now()
    }
}
