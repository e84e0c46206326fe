use std::sync::{Arc, Mutex};
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{Next, Observer, RunId, Started};
use formwork_testkit::{Reply, Scripted};
use serde_json::{Value, json};

use crate::support::*;

/// An observer that records every event.
#[derive(Default)]
struct Notes(Mutex<Vec<(RunId, String)>>);

impl Notes {
    fn note(&self, run: RunId, line: String) {
        self.0.lock().unwrap().push((run, line));
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }
}

impl Observer for Notes {
    fn call_started(&self, run: RunId, started: &Started<'_>) {
        let dialogue = started.call.messages.len();
        self.note(run, format!("{} {} ({dialogue})", started.attempt, started.target));
    }
    fn delta(&self, run: RunId, delta: &Delta) {
        if let Delta::Text(text) = delta {
            self.note(run, text.clone());
        }
    }
    fn call_finished(&self, run: RunId, call: &CallRecord) {
        self.note(run, classes(std::slice::from_ref(call))[0].to_owned());
    }
    fn asking(&self, run: RunId, next: &Next<'_>) {
        self.note(run, format!("next {} {:?}", next.attempt, next.ask));
    }
    fn waiting(&self, run: RunId, wait: Duration) {
        self.note(run, format!("wait {wait:?}"));
    }
    fn external_started(&self, run: RunId, who: External, candidate: &Value) {
        self.note(run, format!("{who:?} about {candidate}"));
    }
    fn external_finished(&self, run: RunId, who: External, violations: &[Violation], value: Option<&Value>) {
        self.note(run, format!("{who:?}: {} {}", violations.len(), value.is_some()));
    }
    fn done(&self, run: RunId, result: &Result<Outcome<Value>, Error>) {
        self.note(run, format!("done {}", result.is_ok()));
    }
}

#[tokio::test]
async fn an_observer_sees_every_attempt() {
    let model = Arc::new(Scripted::new([Reply::from(FaultKind::Overloaded), "no".into(), "no!".into()]));
    let notes = Arc::new(Notes::default());
    let builder = persons(&model).0.with_max_attempts(2).with_observer(notes.clone());
    let extractor = builder.with_fallback_fn(|_| Some(json!(maria()))).build().unwrap();
    extractor.extract(TEXT).await.unwrap();
    let expected = [
        "1 scripted (1)",
        "fault",
        "next 1 Whole",
        "wait 2s",
        "1 scripted (1)",
        "no",
        "not_json",
        "next 2 Whole",
        "2 scripted (3)",
        "no!",
        "not_json",
        "Fallback about null",
        "Fallback: 0 true",
        "done true",
    ];
    assert_eq!(notes.lines(), expected);

    extractor.extract(TEXT).await.unwrap();
    let mut runs: Vec<_> = notes.0.lock().unwrap().iter().map(|(run, _)| *run).collect();
    runs.dedup();
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0].to_string(), runs[1].to_string());
}

/// An observer that panics at every event.
struct Touchy;

impl Observer for Touchy {
    fn delta(&self, _: RunId, _: &Delta) {
        panic!("an observer's own panic, which the test expects");
    }
}

#[tokio::test]
async fn an_observer_s_panic_changes_nothing() {
    let model = Arc::new(Scripted::new([MARIA]));
    let notes = Arc::new(Notes::default());
    let builder = persons(&model).0.with_observer(Touchy).with_observer(notes.clone());
    assert_eq!(builder.build().unwrap().extract(TEXT).await.unwrap().value, maria());
    assert_eq!(notes.lines().last().unwrap(), "done true");
}
