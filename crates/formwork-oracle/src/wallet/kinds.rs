use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enumeration of names: the same in JSON, in CSV and in messages.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name, as files have it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|one| one.name()).collect();
                    format!("{} is unknown: write one of {}", super::text::quoted(text, 40), known.join(", "))
                })
            }
        }
    };
}

names! {
    /// The purpose of a transaction.
    Category {
        /// Sends or receives coins.
        Transfer = "transfer",
        /// Exchanges one coin for another.
        Swap = "swap",
        /// Lends, borrows, repays.
        Lending = "lending",
        /// Stakes, unstakes, claims rewards.
        Staking = "staking",
        /// Adds liquidity to a pool or removes it.
        Liquidity = "liquidity",
        /// Mints, buys, sells, lists.
        Nft = "nft",
        /// Moves value between chains.
        Bridge = "bridge",
        /// Votes, delegates, proposes.
        Governance = "governance",
        /// Claims what was given away.
        Airdrop = "airdrop",
        /// Any other call of a contract.
        Contract = "contract",
    }
}

names! {
    /// Why a transaction is a risk.
    RiskFlag {
        /// Value came out of a mixer or went into one.
        Mixer = "mixer",
        /// The other side is on a list of sanctions.
        Sanctioned = "sanctioned",
        /// The other side is known to steal.
        Phishing = "phishing",
        /// Value out of an attack on a protocol.
        Exploit = "exploit",
        /// A coin whose makers ran.
        RugPull = "rug_pull",
        /// Trades with itself.
        WashTrading = "wash_trading",
        /// A position was liquidated.
        Liquidation = "liquidation",
        /// A contract that nobody has verified.
        UnverifiedContract = "unverified_contract",
    }
}

names! {
    /// How much an owner says to know.
    Experience {
        /// New to it.
        Newcomer = "newcomer",
        /// Now and then.
        Casual = "casual",
        /// Every week.
        Regular = "regular",
        /// Daily, for years.
        Expert = "expert",
    }
}

names! {
    /// How much risk an owner says to take.
    RiskTolerance {
        /// None that can be avoided.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Any.
        High = "high",
    }
}
