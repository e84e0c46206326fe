//! Uses this crate alone: a scripted model behind a time-out and a limit of simultaneous calls.
//!
//! `cargo run -p formwork-layers --example embed-layers`

use std::sync::Arc;
use std::time::Duration;

use formwork_core::Layer as _;
use formwork_layers::{Concurrency, Timeout, Trace};
use formwork_testkit::Scripted;

fn main() {
    let model = Arc::new(Scripted::new([r#"{"city": "Lisbon"}"#]));
    let timed = Timeout::new().with_total(Duration::from_secs(30)).wrap(model);
    let limited = Concurrency::new(4).wrap(timed);
    let traced = Trace::new("scripted", "none").wrap(limited);
    println!("{} with {:?}", traced.name(), traced.capabilities().enforcement);
}
