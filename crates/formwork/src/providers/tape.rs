use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use formwork_core::{Fault, Time};
use formwork_wire::cassette::{Cassette, Recorder};
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, SharedTransport, Transport};

/// A transport that writes its recording to a file when it is dropped.
#[derive(Debug)]
pub(super) struct Tape {
    recorder: Recorder,
    path: PathBuf,
}

impl Tape {
    /// Records a transport to a file.
    ///
    /// # Errors
    /// A message, if the path is something other than a cassette.
    pub(super) fn new(inner: SharedTransport, path: PathBuf) -> Result<Self, String> {
        replaceable(&path)?;
        Ok(Self { recorder: Recorder::new(inner), path })
    }

    /// Writes the cassette to a temporary file and renames it, so that symbolic links are not followed, and a process
    /// that ends meanwhile leaves the last cassette whole. Without requests nothing is written.
    fn write(&self) -> Result<(), String> {
        let cassette = self.recorder.cassette();
        if cassette.exchanges.is_empty() {
            return Ok(());
        }
        replaceable(&self.path)?;
        let beside = self.path.with_added_extension(format!("{}.part", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // The cassette contains prompts and answers, which other users of the machine must not read.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options
            .open(&beside)
            .and_then(|mut file| file.write_all(cassette.to_json().as_bytes()))
            .and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            error.to_string()
        })
    }
}

/// Rejects a path with anything but a cassette.
fn replaceable(path: &Path) -> Result<(), String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(text) if Cassette::from_json(&text).is_ok() => Ok(()),
        _ => Err("there is something else than a cassette, which is not overwritten".to_owned()),
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        // `drop` cannot return an error, so it is logged.
        if let Err(error) = self.write() {
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
