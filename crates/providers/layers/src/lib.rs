//! Layers around the calls of a provider, for concerns that any call can have: time-outs, limits, traces; and for tiny models,
//! documents in stages.
//!
//! Retries, their delays, budgets and fallbacks need the schema, the dialogue or the deadline, and belong to the
//! [`Run`](formwork_core::Run) instead.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use formwork_core::{Layer, SharedProvider};
//! use formwork_layers::{Concurrency, Timeout, Trace};
//!
//! fn wrapped(provider: SharedProvider) -> SharedProvider {
//!     // From the inside out: the time that a call waits for its turn does not count as the server's.
//!     let timed = Timeout::new().with_first(Duration::from_secs(30)).with_idle(Duration::from_secs(20)).wrap(provider);
//!     let limited = Concurrency::new(8).wrap(timed);
//!     Trace::new("openai", "gpt-5.4-mini").wrap(limited)
//! }
//! # let _ = wrapped(Arc::new(formwork_testkit::Scripted::new(["{}"])));
//! ```

mod around;
mod concurrency;
pub mod names;
mod rate;
mod stages;
mod timeout;
mod tokens;
mod trace;

pub use around::{Around, around};
pub use concurrency::Concurrency;
pub use rate::Rate;
pub use stages::Stages;
pub use timeout::Timeout;
pub use tokens::Tokens;
pub use trace::Trace;
