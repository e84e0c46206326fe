//! The driver without an extractor, with plans and runs that the test builds.

use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{CancellationToken, Driver};
use formwork_testkit::Scripted;
use serde_json::json;

use crate::support::*;

fn plan(names: &[&str]) -> Arc<Plan> {
    let target =
        |name: &&str| Target::new(*name, Capabilities::new(Enforcement::Schema)).with_mode(Arc::new(AsIs));
    let contract = formwork_schema::contract::<Person>().unwrap();
    Arc::new(Plan::new(contract, names.iter().map(target).collect()).build().unwrap())
}

fn model() -> SharedProvider {
    Arc::new(Scripted::new([MARIA]))
}

#[tokio::test]
async fn a_stored_run_continues() {
    let (plan, driver) = (plan(&["one"]), Driver::new([model()]));
    let mut run = Run::new(&plan, TEXT.into());
    assert!(matches!(run.step(&plan, Time(1_000)).unwrap(), Step::Call { .. }));
    let stored = serde_json::to_string(&run).unwrap();

    let token = CancellationToken::new();
    let resumed: Run = serde_json::from_str(&stored).unwrap();
    let outcome = driver.drive(&plan, resumed, &token).await.unwrap();
    assert_eq!((outcome.value, outcome.calls[0].started), (json!(maria()), Time(1_000)));
    let outcome = driver.stream(Arc::clone(&plan), run, token).outcome().await.unwrap();
    assert_eq!(outcome.value, json!(maria()));
}

#[tokio::test]
async fn what_does_not_belong_together_is_refused() {
    let token = CancellationToken::new();
    let (one, two) = (plan(&["one"]), plan(&["one", "two"]));
    let driver = Driver::new([model()]);
    let error = driver.drive(&two, Run::new(&two, TEXT.into()), &token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("2 targets, but the driver has 1 providers"), "{error}");
    let error = driver.drive(&one, Run::new(&two, TEXT.into()), &token).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, "the run was started with another plan"));
}
