use async_trait::async_trait;
use formwork_core::{Fault, FaultKind, Time};
use formwork_openai::LineBreaks;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, Transport};

/// A transport on which every request fails for this reason.
#[derive(Debug)]
struct Failing(FaultKind);

#[async_trait]
impl Transport for Failing {
    async fn send(&self, _: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault> {
        assert_eq!(deadline, Some(Time(5_000)), "the question has a limit of its own");
        Err(Fault::new(self.0, "nothing"))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_not_asked_again() {
    let late = LineBreaks::default();
    late.ask(&Failing(FaultKind::Timeout)).await.unwrap();
    assert!(late.is_known());
    let unreachable = LineBreaks::default();
    assert!(unreachable.ask(&Failing(FaultKind::Unreachable)).await.is_err());
    assert!(!unreachable.is_known(), "the next call asks again");
}
