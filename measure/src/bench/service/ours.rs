//! Formwork's side: the service of `formwork oracle serve` with a simulated model that responds at once.

use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Delta, End, Enforcement, Fault, Finish, Provider, Usage};
use formwork_oracle::Oracle;
use formwork_oracle::metrics::Metrics;
use formwork_oracle::service::{Limits, Service};
use futures_util::Stream;

use crate::Failure;
use crate::bench::process;

/// A completion that satisfies the schema and the rule about the sum.
const ANSWER: &str = r#"{"score": 905, "scoreBreakdown": {"activity": 89, "maturity": 96, "diversity": 86, "riskBehavior": 93, "surveyMatch": 100}, "reasoning": "The wallet has been active for more than seven years with steady use of sixteen protocols, and what the survey says fits its history. Six calls of unverified contracts are the only mark against it.", "risk_factors": ["Six calls of unverified contracts"], "strengths": ["Seven years of steady activity", "Sixteen protocols", "Survey fits the history"]}"#;

pub(in crate::bench) async fn serve() -> Result<(), Failure> {
    let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_seed();
    let metrics = Metrics::new();
    let oracle = Oracle::builder().with_target(Arc::new(Ready(capabilities)) as Arc<dyn Provider>);
    let oracle = oracle.with_observer(metrics.clone()).build()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    process::tell(listener.local_addr()?);
    let service = Service::new(oracle, metrics).with_limits(Limits::default());
    Ok(service.serve(listener, std::future::pending()).await?)
}

/// A model that returns the same completion at once.
#[derive(Debug)]
struct Ready(Capabilities);

#[async_trait]
impl Provider for Ready {
    fn name(&self) -> &str {
        "ready"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        let usage = Usage::new(700, 140);
        let end = Delta::End(End::new(Finish::Stop, usage).with_model(Some("ready-1".to_owned())));
        Ok(Answer::new(Deltas([Some(Delta::Text(ANSWER.to_owned())), Some(end)])))
    }
}

struct Deltas([Option<Delta>; 2]);

impl Stream for Deltas {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.iter_mut().find_map(Option::take);
        Poll::Ready(next.map(Ok))
    }
}
