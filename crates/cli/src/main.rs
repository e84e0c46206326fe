//! The `formwork` command.

use std::process::ExitCode;

/// The service makes hundreds of small allocations for a request.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    formwork_cli::run()
}
