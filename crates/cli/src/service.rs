//! The frame of the commands that serve until a signal ends them.

use std::future::Future;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use tokio::runtime::Builder;

use crate::exit::{Failed, Status};

/// Opens the port of a service. A service opens it before it loads a model, so that a port in use is reported at once.
pub(crate) fn listen(at: SocketAddr) -> Result<TcpListener, Failed> {
    TcpListener::bind(at).map_err(|error| {
        let fix = match error.kind() {
            ErrorKind::AddrInUse => ": end the other program, or choose another port with --listen",
            ErrorKind::AddrNotAvailable => ": --listen takes an address of this machine",
            ErrorKind::PermissionDenied => ": choose a port from 1024 with --listen",
            _ => "",
        };
        Failed::usage(format!("cannot listen at {at}: {error}{fix}"))
    })
}

/// Runs a service on a runtime of its own.
pub(crate) fn run(
    mut runtime: Builder,
    service: impl Future<Output = Result<(), Failed>>,
) -> Result<Status, Failed> {
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| Failed::usage(format!("the runtime cannot be started: {error}")))?;
    let served = runtime.block_on(service);
    // Does not wait for blocking work that cannot be cancelled, such as a local model that still generates.
    runtime.shutdown_background();
    served.map(|()| Status::Ok)
}

/// Returns the failure of a service that ended early.
pub(crate) fn failed(error: impl std::fmt::Display) -> Failed {
    Failed::usage(format!("cannot serve: {error}"))
}
