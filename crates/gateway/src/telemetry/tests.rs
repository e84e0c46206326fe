use formwork_testkit::server::{Reply, Server};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value};
use prost::Message as _;

use super::*;

fn to(collector: &Server) -> HttpTransport {
    HttpTransport::new(&collector.url()).unwrap()
}

/// Notes a run with so many calls.
fn note(telemetry: &Telemetry, calls: usize, parent: &'static str) {
    let mut run = RunRecord::new("/v1/chat/completions", Time(1_000));
    run.calls = vec![StoredCall::new("a", "m", Time(1_000), Time(2_000)); calls];
    let trace = HeaderMap::from_iter([("traceparent".parse().unwrap(), parent.parse().unwrap())]);
    telemetry.run(&run, &trace, None, |_| "openai");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_above_the_bound_are_left_out_and_counted() {
    let silent = Server::start([Reply::silent()]).unwrap();
    let collector = Server::start([Reply::status(200)]).unwrap();
    let telemetry = Telemetry::builder().with_traces(to(&silent)).with_metrics(to(&collector));
    let telemetry = telemetry.with_timeout(Duration::from_secs(60)).build().unwrap();
    telemetry.0.runtime.enter();
    note(&telemetry, 10_000, "");
    let meters = telemetry.0.meters.clone();
    tokio::task::spawn_blocking(move || meters.force_flush().unwrap()).await.unwrap();
    let request = collector.received().pop().unwrap();
    let metrics = ExportMetricsServiceRequest::decode(request.body.as_slice()).unwrap().resource_metrics;
    let mut metrics =
        metrics.into_iter().flat_map(|metrics| metrics.scope_metrics).flat_map(|scope| scope.metrics);
    let dropped = metrics.find(|metric| metric.name == "formwork.telemetry.spans_dropped").unwrap();
    let Some(Data::Sum(sum)) = dropped.data else { panic!("{dropped:?}") };
    assert_eq!(sum.data_points[0].value, Some(Value::AsInt(10_001 - MAX_SPANS as i64)));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_spans_are_counted_and_leave_the_queue() {
    let collector = Server::start([Reply::status(400)]).unwrap();
    let telemetry = Telemetry::builder().with_traces(to(&collector)).build().unwrap();
    telemetry.export_while(async { note(&telemetry, 3, "") }).await;
    assert_eq!(collector.received().len(), 1);
    let Spans { waiting, dropped } = &*telemetry.0.spans;
    assert_eq!((waiting.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed)), (0, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_the_traces_follows_the_callers_decision() {
    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const NOT_SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    for (sampling, parent, spans) in [
        (None, "", 2),
        (None, NOT_SAMPLED, 2),
        (Some(0.0), "", 0),
        (Some(0.0), SAMPLED, 2),
        (Some(1.0), "", 2),
        (Some(1.0), NOT_SAMPLED, 0),
    ] {
        let collector = Server::start([Reply::status(200)]).unwrap();
        let builder = Telemetry::builder().with_traces(to(&collector));
        let builder = sampling.map_or(builder.clone(), |sampling| builder.with_sampling(sampling));
        let telemetry = builder.build().unwrap();
        telemetry.export_while(async { note(&telemetry, 1, parent) }).await;
        let received = collector.received();
        let requests = received
            .iter()
            .map(|request| ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap());
        let exported =
            requests.flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
        assert_eq!(exported.map(|scope| scope.spans.len()).sum::<usize>(), spans, "{sampling:?} {parent}");
    }
}
