//! `tickets < message.txt`: prints the ticket of one message as JSON.

use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let message = std::io::read_to_string(std::io::stdin())?;
    let ticket = tickets::extractor().await?.extract(message.as_str()).await?.value;
    println!("{}", serde_json::to_string_pretty(&ticket)?);
    Ok(())
}
