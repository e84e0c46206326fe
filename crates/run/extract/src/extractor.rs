use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Error, ErrorKind, Input, Message, Outcome, Plan, Role, Run, decode};
use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::journal::Journal;
use crate::observer::Paced;
use crate::{CancellationToken, Driver, Observer, Rotation, Updates, blocking};

/// Extracts values of one type from texts. Build it once and use it for any number of inputs, from any number of tasks.
///
/// Clones are cheap and share all state.
///
/// ```
/// use formwork_extract::Extractor;
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// #[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
/// struct Person {
///     name: String,
///     age: u8,
/// }
///
/// let model = Scripted::new([r#"{"name": "Maria Lindqvist", "age": 34}"#]);
/// let extractor = Extractor::<Person>::builder()
///     .with_target(Arc::new(model))
///     .with_system("Extract the person that the text is about.")
///     .with_example("Ada, 36, counts.", Person { name: "Ada".into(), age: 36 })
///     .check("$.age", "adult", |person| if person.age >= 18 { Ok(()) } else { Err("at least 18".into()) })
///     .build()?;
/// let outcome = extractor.extract_blocking("Maria Lindqvist, 34, moved to Lisbon last spring.")?;
/// assert_eq!((outcome.value.age, outcome.calls.len()), (34, 1));
/// # Ok::<(), formwork_core::Error>(())
/// ```
pub struct Extractor<T> {
    shared: Arc<Shared>,
    of: PhantomData<fn() -> T>,
}

pub(crate) struct Shared {
    pub(crate) order: Order,
    pub(crate) system: Option<Arc<Message>>,
    pub(crate) examples: Vec<Arc<Message>>,
    pub(crate) data: Value,
    pub(crate) seed: Option<u64>,
}

/// The plan and the driver, and with a rotation those for each other first target.
pub(crate) struct Order {
    pub(crate) plan: Arc<Plan>,
    pub(crate) driver: Arc<Driver>,
    /// The plans and drivers that start with the second target, the third and so on; empty without a rotation.
    pub(crate) others: Vec<(Arc<Plan>, Arc<Driver>)>,
    pub(crate) rotation: Option<Rotation>,
}

impl Order {
    /// Returns the plan and the driver of the next run.
    fn next(&self) -> (Arc<Plan>, Arc<Driver>) {
        let first = self.rotation.as_ref().map_or(0, Rotation::take_turn);
        let other = first.checked_sub(1).and_then(|other| self.others.get(other));
        other.cloned().unwrap_or_else(|| (Arc::clone(&self.plan), Arc::clone(&self.driver)))
    }
}

impl<T: DeserializeOwned + Send + 'static> Extractor<T> {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), of: PhantomData }
    }

    /// Returns the plan: the contract, the targets in the order in which they were added, and the limits.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.shared.order.plan
    }

    /// Extracts a value from one input: a text, messages, or an [`Input`] with data for the checks.
    ///
    /// Dropping the future cancels the open call at once.
    ///
    /// # Errors
    /// [`Error`] with every call, if no answer was accepted.
    pub async fn extract(&self, input: impl Into<Input> + Send) -> Result<Outcome<T>, Error> {
        let extraction = self.extraction(input);
        extraction.run().await
    }

    /// Extracts a value from one input and blocks the thread until then; see [`blocking`](crate#blocking).
    ///
    /// # Errors
    /// The errors of [`extract`](Self::extract); [`ErrorKind::Config`] inside of an async runtime.
    pub fn extract_blocking(&self, input: impl Into<Input>) -> Result<Outcome<T>, Error> {
        self.extraction(input).run_blocking()
    }

    /// Extracts a value from one input, and returns all updates of the run as a stream.
    pub fn stream(&self, input: impl Into<Input>) -> Updates<T> {
        self.extraction(input).stream()
    }

    /// Extracts values from many inputs, `concurrency` at a time (minimum: 1), and returns the results in the order of the
    /// inputs.
    ///
    /// The iterator may be endless: an input is taken when fewer than `concurrency` inputs are in progress. A result that is
    /// not read counts as in progress. An error affects only its own input.
    pub fn extract_all<I>(
        &self,
        inputs: I,
        concurrency: usize,
    ) -> impl Stream<Item = Result<Outcome<T>, Error>> + use<T, I>
    where
        I: IntoIterator<Item: Into<Input>>,
    {
        let this = self.clone();
        let extractions = inputs.into_iter().map(move |input| this.extraction(input).run());
        stream::iter(extractions).buffered(concurrency.max(1))
    }

    /// Returns an extraction that has not started, to add a cancellation token or an observer for this input.
    pub fn extraction(&self, input: impl Into<Input>) -> Extraction<T> {
        let (plan, driver) = self.shared.order.next();
        let run = Run::new(&plan, self.complete(input.into()));
        Extraction::new(plan, driver, run)
    }

    /// Returns an extraction that continues a stored run; see [`Extraction::with_journal`]. `None` if the run was created
    /// with another plan: another contract, other targets or other settings.
    pub fn continued(&self, run: Run) -> Option<Extraction<T>> {
        let Order { plan, driver, others, .. } = &self.shared.order;
        let mut orders =
            [(plan, driver)].into_iter().chain(others.iter().map(|(plan, driver)| (plan, driver)));
        let (plan, driver) = orders.find(|(plan, _)| run.is_of(plan))?;
        let (plan, driver) = (Arc::clone(plan), Arc::clone(driver));
        Some(Extraction::new(plan, driver, run))
    }

    /// Puts the system prompt and the examples before the messages of the input.
    fn complete(&self, input: Input) -> Input {
        let Input { messages, source, data, seed, settings, deadline, budget, mut client } = input;
        if let Some(client) = &mut client {
            let own = self.shared.system.iter().chain(&self.shared.examples).cloned();
            Arc::make_mut(client).before.splice(0..0, own);
        }
        let leading = messages.iter().take_while(|message| message.role == Role::System).count();
        let mut rest = messages.into_iter();
        // All system texts become one message, because many providers reject a second one.
        let own: Vec<Arc<Message>> = rest.by_ref().take(leading).collect();
        let mut messages = Vec::with_capacity(1 + self.shared.examples.len() + rest.len());
        match (&self.shared.system, own.as_slice()) {
            (None, []) => {}
            (Some(system), []) => messages.push(Arc::clone(system)),
            (system, own) => {
                let texts: Vec<_> = system.iter().chain(own).map(|message| message.joined()).collect();
                messages.push(Arc::new(Message::system(texts.join("\n\n"))));
            }
        }
        messages.extend(self.shared.examples.iter().cloned());
        messages.extend(rest);
        let data = if data.is_null() { self.shared.data.clone() } else { data };
        let seed = seed.or(self.shared.seed);
        Input { messages, source, data, seed, settings, deadline, budget, client }
    }
}

impl<T> Clone for Extractor<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), of: PhantomData }
    }
}

impl<T> fmt::Debug for Extractor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extractor")
            .field("plan", &self.shared.order.plan)
            .field("driver", &self.shared.order.driver)
            .finish_non_exhaustive()
    }
}

/// An extraction that has not started.
///
/// ```
/// # fn doc(extractor: formwork_extract::Extractor<serde_json::Value>) -> Result<(), formwork_core::Error> {
/// use formwork_extract::CancellationToken;
///
/// let token = CancellationToken::new();
/// // Another thread can call `token.cancel()` to end the extraction.
/// let outcome = extractor.extraction("Maria, 34").with_cancel(token.clone()).run_blocking()?;
/// # Ok(()) }
/// ```
#[must_use = "an extraction does nothing until `run`, `run_blocking` or `stream` is called"]
pub struct Extraction<T> {
    plan: Arc<Plan>,
    driver: Arc<Driver>,
    /// In a box, because a run is large and every future around it would hold a copy.
    run: Box<Run>,
    cancel: Option<CancellationToken>,
    observers: Vec<Arc<dyn Observer>>,
    journal: Option<Arc<dyn Journal>>,
    of: PhantomData<fn() -> T>,
}

impl<T> Extraction<T> {
    fn new(plan: Arc<Plan>, driver: Arc<Driver>, run: Run) -> Self {
        Self {
            plan,
            driver,
            run: Box::new(run),
            cancel: None,
            observers: Vec::new(),
            journal: None,
            of: PhantomData,
        }
    }
}

impl<T: DeserializeOwned + Send + 'static> Extraction<T> {
    formwork_core::setters! {
        /// Sets the token that cancels the extraction (default: none).
        pub fn with_cancel(Some(cancel): CancellationToken);
        /// Sets the journal that stores the run after each call but the last (default: none), for
        /// [`Extractor::continued`] in another process.
        pub fn with_journal(Some(journal): Arc<dyn Journal>);
    }

    /// Reduces the time that the extraction may take by the time that earlier ones for the same answer took (default: 0).
    pub fn with_elapsed(mut self, elapsed: Duration) -> Self {
        self.run.take_time(&self.plan, elapsed);
        self
    }

    /// Adds an observer of this extraction (default: none).
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Returns the plan and the run, for a driver of your own. What the extractor's store has observed is not applied to the run.
    pub fn into_parts(self) -> (Arc<Plan>, Run) {
        (self.plan, *self.run)
    }

    /// Runs the extraction.
    ///
    /// # Errors
    /// The errors of [`Extractor::extract`].
    pub async fn run(self) -> Result<Outcome<T>, Error> {
        self.tapped(None).await
    }

    /// Runs the extraction and blocks the thread until it has ended; see [`blocking`](crate#blocking).
    ///
    /// # Errors
    /// The errors of [`Extractor::extract_blocking`].
    pub fn run_blocking(self) -> Result<Outcome<T>, Error> {
        blocking::block_on(self.run())?
    }

    /// Returns the updates of the extraction. Reading the stream drives the run.
    pub fn stream(self) -> Updates<T> {
        Updates::new(move |tap| async move { self.tapped(Some(tap.as_ref())).await })
    }

    async fn tapped(self, tap: Option<&dyn Paced>) -> Result<Outcome<T>, Error> {
        let Self { plan, driver, run, cancel, observers, journal, .. } = self;
        let (outcome, decoded) =
            driver.tapped::<T>(&plan, run, cancel.as_ref(), &observers, tap, journal.as_deref()).await?;
        if let Some(value) = decoded {
            return Ok(outcome.map(|_| value));
        }
        // A contract without a type decodes nothing.
        let mut value = None;
        let outcome = outcome.map(|own| value = Some(own));
        // A document is what it is decoded as.
        if let Some(value) = (&mut value as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take) {
            return Ok(outcome.map(|()| value));
        }
        let value = decode(&value.unwrap_or_default()).map_err(|error| {
            // Judging decoded the value before, so this happens only if decoding depends on more than the value.
            Error::new(ErrorKind::Rejected, format!("the accepted value does not decode: {error}"))
        })?;
        Ok(outcome.map(|_| value))
    }
}

formwork_core::debug_fields!(Extraction<T> { driver });
