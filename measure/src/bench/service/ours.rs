//! Formwork's side: the service of `formwork oracle serve` with a simulated model that responds at once.

use std::net::TcpListener;

use formwork_core::{Capabilities, Completion, Enforcement, Usage};
use formwork_oracle::Oracle;
use formwork_oracle::metrics::Metrics;
use formwork_oracle::service::{Limits, Service};

use crate::Failure;
use crate::bench::process;
use crate::scripted::scripted;

/// A completion that satisfies the schema and the rule about the sum.
const ANSWER: &str = r#"{"score": 905, "scoreBreakdown": {"activity": 89, "maturity": 96, "diversity": 86, "riskBehavior": 93, "surveyMatch": 100}, "reasoning": "The wallet has been active for more than seven years with steady use of sixteen protocols, and what the survey says fits its history. Six calls of unverified contracts are the only mark against it.", "risk_factors": ["Six calls of unverified contracts"], "strengths": ["Seven years of steady activity", "Sixteen protocols", "Survey fits the history"]}"#;

pub(in crate::bench) async fn serve() -> Result<(), Failure> {
    let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_seed();
    let metrics = Metrics::new();
    let answer =
        Completion::new(ANSWER).with_usage(Usage::new(700, 140)).with_model(Some("ready-1".to_owned()));
    let ready = scripted(capabilities, move |_| answer.clone());
    let oracle = Oracle::builder().with_target(ready);
    let oracle = oracle.with_observer(metrics.clone()).build()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    process::tell(listener.local_addr()?);
    let service = Service::new(oracle, metrics).with_limits(Limits::default());
    Ok(service.serve(listener, std::future::pending()).await?)
}
