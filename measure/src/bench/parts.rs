//! The parts of benchmarks that run in a process of their own: servers, whose CPU time is measured apart from that of their clients,
//! and measurements of memory.

use super::{gateway, http, local, runtime, service, soak};
use crate::Failure;

/// Runs a part, which is named by the first arguments. A measurement prints one line of JSON.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    runtime()?.block_on(async {
        let line = match args.as_slice() {
            ["serve", "http"] => return http::server::serve().await,
            ["serve", "oracle"] => return service::ours::serve().await,
            ["serve", "oracle-bare", answer] => return service::bare::serve(answer).await,
            ["serve", "upstream"] => return gateway::upstream::serve().await,
            ["serve", "bare", url] => return gateway::bare::serve(url).await,
            ["serve", "by-hand", url] => return gateway::by_hand::serve(url).await,
            ["serve", "played"] => return gateway::played::serve().await,
            ["serve", "soak", urls, file] => return soak::traffic::serve(urls, file).await,
            ["serve", side, url] => return gateway::ours::serve(side, url).await,
            ["held", side, calls] => http::held::measure(*side == "ours", calls.parse()?).await?,
            ["flood", how, bytes] => http::flood::measure(*how == "whole", bytes.parse()?).await?,
            ["only", wire, side, mode, calls] => {
                http::calls::only(wire, *side == "ours", *mode == "stream", calls.parse()?).await?
            }
            ["load", address, kind, connections, requests] => {
                gateway::sides::load(address, kind, connections.parse()?, requests.parse()?).await?
            }
            ["decode", tokens, system, user] => local::decode::measure(tokens.parse()?, system, user).await?,
            ["choosing", seeds, rounds, schema, text] => {
                local::choosing::measure(seeds.parse()?, rounds.parse()?, schema, text).await?
            }
            ["planted", noticed] => soak::planted::one(noticed).await?,
            _ => return Err("see the parts in measure/src/bench/parts.rs".into()),
        };
        println!("{line}");
        Ok(())
    })
}
