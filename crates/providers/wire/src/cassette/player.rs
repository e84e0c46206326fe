use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Clock, Fault, FaultKind, Time};
use futures_core::Stream;
use http::{Request, Response};

use super::{Cassette, Chunk, Exchange, Recorded};
use crate::{Body, Transport};

/// A transport that replays a cassette.
///
/// Each exchange is replayed once, for the same request as recorded, in any order. A request that was not recorded fails with
/// its difference from the nearest recorded request, so that a test detects changed requests.
///
/// ```
/// use std::sync::Arc;
/// use formwork_wire::{Http, Wire, cassette::{Cassette, Player}};
///
/// /// A provider that replays the exchanges of a file.
/// fn replayed<W: Wire>(wire: W, file: &str) -> Result<Http<W>, String> {
///     let player = Player::new(Cassette::from_json(file)?);
///     Ok(Http::new(wire, Arc::new(player)))
/// }
/// ```
#[derive(Debug)]
pub struct Player {
    /// The exchanges. `None`: already replayed.
    exchanges: Mutex<Vec<Option<Exchange>>>,
    clock: Option<Arc<dyn Clock>>,
}

impl Player {
    /// Creates a player that replays the cassette without delays.
    pub fn new(cassette: Cassette) -> Self {
        let exchanges = cassette.exchanges.into_iter().map(Some).collect();
        Self { exchanges: Mutex::new(exchanges), clock: None }
    }

    /// Sets the clock for replaying at the recorded speed (default: none, no delays).
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Returns the number of exchanges not replayed yet.
    pub fn left(&self) -> usize {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().count()
    }

    fn take(&self, request_now: &Recorded) -> Result<Exchange, Fault> {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let differences = |exchange: &Exchange| {
            if exchange.schema_dropped {
                exchange.request.without_schema().difference(&request_now.without_schema())
            } else {
                exchange.request.difference(request_now)
            }
        };
        let same = exchanges
            .iter_mut()
            .find(|exchange| exchange.as_ref().is_some_and(|exchange| differences(exchange).is_none()));
        if let Some(exchange) = same.and_then(Option::take) {
            return Ok(exchange);
        }
        let nearest =
            exchanges.iter().flatten().max_by_key(|exchange| exchange.request.likeness(request_now));
        let why = match nearest.and_then(|exchange| exchange.request.difference(request_now)) {
            Some(difference) => format!("the nearest recorded request differs: {difference}"),
            None => "every recorded exchange has been replayed already".to_owned(),
        };
        let message = format!(
            "the cassette has no {} {}: {why}; record it again",
            request_now.method, request_now.path
        );
        Err(Fault::new(FaultKind::BadRequest, message))
    }
}

#[async_trait]
impl Transport for Player {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let exchange = self.take(&Recorded::new(&request, str::to_owned))?;
        let Some(head) = exchange.response else {
            let nothing = || Fault::new(FaultKind::BadWire, "the recording ended before the response");
            return Err(exchange.fault.unwrap_or_else(nothing));
        };
        let mut response = Response::builder().status(head.status);
        for (name, value) in &head.headers {
            response = response.header(name, value);
        }
        let (chunks, clock) = (exchange.chunks.into(), self.clock.clone());
        let body = Body::new(Playing { chunks, fault: exchange.fault, clock, waiting: None });
        response
            .body(body)
            .map_err(|error| Fault::new(FaultKind::BadWire, format!("the cassette's response: {error}")))
    }

    fn now(&self) -> Time {
        self.clock.as_ref().map_or(Time(0), |clock| clock.now())
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Playing {
    chunks: VecDeque<Chunk>,
    fault: Option<Fault>,
    clock: Option<Arc<dyn Clock>>,
    /// The delay before the first chunk.
    waiting: Option<Wait>,
}

impl Stream for Playing {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let (Some(clock), Some(chunk), None) = (&this.clock, this.chunks.front(), &this.waiting) {
            let clock = clock.clone();
            let until = clock.now().after(std::time::Duration::from_millis(chunk.after_ms));
            this.waiting = Some(Box::pin(async move { clock.sleep_until(until).await }));
        }
        if let Some(wait) = &mut this.waiting {
            ready!(wait.as_mut().poll(cx));
            this.waiting = None;
        }
        Poll::Ready(match this.chunks.pop_front() {
            Some(chunk) => Some(Ok(Bytes::copy_from_slice(chunk.bytes()))),
            None => this.fault.take().map(Err),
        })
    }
}
