//! Uses this crate alone: tests a provider by its answers, as its test file would.
//!
//! `cargo run -p formwork-conformance --example embed-conformance`

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use formwork_conformance::{Live, Suite};
use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Finish, Provider, SharedProvider, Usage};

/// Gives the same answer to every prompt, within the token limit.
#[derive(Debug, Default)]
struct Parrot(Capabilities);

#[async_trait]
impl Provider for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let usage = Usage::new(3, 3);
        let finish =
            if call.max_tokens.is_some_and(|most| most < 10) { Finish::Length } else { Finish::Stop };
        Ok(Completion::new("Hello, hello!").with_usage(usage).with_finish(finish).into())
    }
}

async fn parrot() -> Result<SharedProvider, String> {
    Ok(Arc::new(Parrot::default()))
}

fn main() -> ExitCode {
    Suite::new().live(Live::new("parrot", "it needs no server", parrot).always()).run()
}
