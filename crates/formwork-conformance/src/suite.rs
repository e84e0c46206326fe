use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Builder;

use crate::{Live, Protocol, live, wire};

/// The trials of one provider, as a program of tests with the usual arguments.
#[derive(Default)]
pub struct Suite {
    trials: Vec<Trial>,
}

impl Suite {
    /// No trials yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the trials of a provider that speaks HTTP, against a server that this crate plays (default: none).
    #[must_use]
    pub fn protocol(mut self, protocol: impl Protocol) -> Self {
        let protocol: Arc<dyn Protocol> = Arc::new(protocol);
        for (name, trial) in wire::TRIALS {
            let (name, protocol) = (format!("{}::{name}", protocol.name()), protocol.clone());
            self.trials.push(Trial::test(name, move || block_on(trial(protocol)).map_err(Failed::from)));
        }
        self
    }

    /// Adds the trials of a provider by its answers (default: none): always, or if `FORMWORK_LIVE` names it.
    #[must_use]
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

    /// Runs them, with the arguments of this process.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

/// Each trial has a runtime of its own, so that none waits for what another left behind.
fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))?.block_on(future)
}
