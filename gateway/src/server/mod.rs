//! What worker and frontend have in common as servers: how connections are
//! accepted, watched and seen out, how a server starts and ends, how requests are
//! named, what paths mean, and the shapes of answers and metrics.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | `path` | what paths mean |
//! | `named` | what identifies a request in the log |
//! | `causes` | an error with what is behind it |
//! | [`answer`] | answers of our own, and the type of every answer |
//! | `discard` | bodies that nobody wants |
//! | `drain` | how fast requests finish, and when a refused one may come again |
//! | `series` | series of `/metrics` that are set when they are read |
//! | `busy` | whether a connection has a request in progress |
//! | `serve` | connections |
//! | `running` | a server from its listeners to its end |

pub mod answer;
mod busy;
pub(crate) mod causes;
pub(crate) mod discard;
pub(crate) mod drain;
pub(crate) mod named;
pub(crate) mod path;
pub(crate) mod running;
pub(crate) mod series;
mod serve;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where to send requests to that a server at `addr` is to get, from this machine.
pub(crate) fn url_of(mut addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        addr.set_ip(match addr.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{addr}")
}
