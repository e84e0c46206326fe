use std::process::ExitCode;
use std::sync::Arc;

use formwork_wire::SharedTransport;
use formwork_wire::batch::SharedBatchApi;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Builder;

use crate::section::Open;
use crate::{BatchProtocol, Live, Protocol, ServerOfSection, batches, live, section, wire};

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
            let subject = protocol.clone();
            self.add(protocol.name(), name, move || trial(subject));
        }
        self
    }

    /// Adds the tests of a batch API, for which this crate plays the server (default: none).
    pub fn batches(mut self, protocol: impl BatchProtocol) -> Self {
        let protocol: Arc<dyn BatchProtocol> = Arc::new(protocol);
        for (name, trial) in batches::TRIALS {
            let subject = protocol.clone();
            self.add(protocol.name(), name, move || trial(subject));
        }
        self
    }

    /// Adds the tests of the pass-through of a kind of provider (default: none). `open` returns the transport that a section with this
    /// server has for requests that are forwarded unchanged.
    pub fn pass_through(
        mut self,
        name: &str,
        open: impl Fn(&ServerOfSection) -> Result<SharedTransport, String> + Send + Sync + 'static,
    ) -> Self {
        let open: Open<SharedTransport> = Arc::new(open);
        for (test, trial) in section::PASS_THROUGH {
            let subject = open.clone();
            self.add(&format!("{name}::pass_through"), test, move || trial(subject));
        }
        self
    }

    /// Adds the tests of the batch API that a section with this server opens (default: none); [`batches`](Self::batches) tests the API
    /// itself.
    pub fn batches_of_section(
        mut self,
        name: &str,
        open: impl Fn(&ServerOfSection) -> Result<SharedBatchApi, String> + Send + Sync + 'static,
    ) -> Self {
        let open: Open<SharedBatchApi> = Arc::new(open);
        for (test, trial) in section::BATCH {
            let subject = open.clone();
            self.add(&format!("{name}::batches"), test, move || trial(subject));
        }
        self
    }

    fn add<F: Future<Output = Result<(), String>>>(
        &mut self,
        subject: &str,
        name: &str,
        run: impl FnOnce() -> F + Send + 'static,
    ) {
        let test = move || block_on(run()).map_err(Failed::from);
        self.trials.push(Trial::test(format!("{subject}::{name}"), test));
    }

    /// Adds the tests of a provider by its answers (default: none). They run if `FORMWORK_LIVE` names the provider, or
    /// [always](Live::always).
    pub fn live(mut self, live: Live) -> Self {
        if !live.is_wanted() {
            return self;
        }
        let live = Arc::new(live);
        for (name, trial) in live::TRIALS {
            let subject = live.clone();
            self.add(live.name(), name, move || async move {
                trial(&subject.open().await?).await.map_err(|why| subject.blame(&why))
            });
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
