use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Builder;

use crate::{Live, Protocol, live, wire};

/// The conformance tests of one provider, as a test program with the usual command line.
///
/// ```
/// use formwork_conformance::{Live, Suite};
/// use formwork_core::SharedProvider;
///
/// fn tests(provider: SharedProvider) -> std::process::ExitCode {
///     let open = move || std::future::ready(Ok(provider.clone()));
///     Suite::new().live(Live::new("mine", "start it with `my-server`", open)).run()
/// }
/// ```
#[derive(Default)]
#[must_use]
pub struct Suite {
    trials: Vec<Trial>,
}

impl Suite {
    /// Creates a suite without tests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the tests of an HTTP provider, for which this crate plays the server (default: none).
    pub fn protocol(mut self, protocol: impl Protocol) -> Self {
        let protocol: Arc<dyn Protocol> = Arc::new(protocol);
        for (name, trial) in wire::TRIALS {
            let (name, protocol) = (format!("{}::{name}", protocol.name()), protocol.clone());
            self.trials.push(Trial::test(name, move || block_on(trial(protocol)).map_err(Failed::from)));
        }
        self
    }

    /// Adds the tests of a provider by its answers (default: none). They run if `FORMWORK_LIVE` names the provider, or
    /// [always](Live::always).
    pub fn live(mut self, live: Live) -> Self {
        if !live.is_wanted() {
            return self;
        }
        let name = live.name().to_owned();
        let (live, live_name) = (Arc::new(live), name);
        for (name, trial) in live::TRIALS {
            let live = live.clone();
            let run = move || {
                block_on(async { trial(&live.open().await?).await.map_err(|why| live.blame(&why)) })
                    .map_err(Failed::from)
            };
            self.trials.push(Trial::test(format!("{}::{name}", live_name), run));
        }
        self
    }

    /// Runs the tests, with the command line arguments of this process.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

/// Returns the tests of an HTTP provider, for which this crate plays the server: the contract of a provider.
pub fn provider(protocol: impl Protocol) -> Suite {
    Suite::new().protocol(protocol)
}

/// Runs a test in a runtime of its own, so that no test depends on the tasks of another.
fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))?.block_on(future)
}
