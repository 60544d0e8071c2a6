//! 20,000 requests held at a frontend: the scenes of [`crate::policy::crowd`], before workers
//! that are all busy, with all that runs for a model's queue.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use super::check::Pace;
use super::members::Members;
use super::pick::{Picker, RouterMode};
use super::policies::Policies;
use super::workers::{Wanted, Workers};
use crate::monitor::{Monitor, MonitorSettings};
use crate::policy::PolicyConfig;
use crate::policy::crowd::{
    Full, a_storm_of_leavers_leaves_nothing_behind, each_is_counted_once_at_every_moment, policy,
    timeouts_come_on_time,
};

const WORKERS: usize = 4;

const NEVER: Duration = Duration::from_secs(3_600);

/// A model's queue before workers that are busy with one prompt each.
fn busy(queue_timeout: Duration) -> Full<Workers> {
    let mut settings = MonitorSettings {
        scrape_interval: None,
        ..MonitorSettings::default()
    };
    settings.thresholds.active_prefill_tokens = Some(100);
    let monitor = Monitor::new(settings);
    let pace = Pace {
        interval: NEVER,
        time: NEVER,
    };
    let members = Arc::new(Members::new(monitor.clone(), pace, NEVER));
    // They answer nothing, and are well because the test says so.
    let listener = || TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let listeners: Vec<TcpListener> = (0..WORKERS).map(|_| listener()).collect();
    for listener in &listeners {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        members.add(url.parse().expect("a URL")).expect("no https");
    }
    for member in members.all().iter() {
        member.known().health.answered();
    }
    let picker = Picker::new(RouterMode::default(), 16, 0);
    let workers = Workers::new(members, Arc::new(picker), monitor);
    let policies = Policies::new(workers, PolicyConfig::new(policy(queue_timeout)));
    let queue = policies.of("m");
    let wanted = Wanted {
        prompt_bytes: 4_000,
        ..Wanted::default()
    };
    let layer = Arc::clone(&queue.layer);
    Full::new(layer, wanted, WORKERS, (policies, queue, listeners))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_workers_timeouts_come_on_time_however_many_are_held() {
    let queue_timeout = Duration::from_secs(1);
    timeouts_come_on_time(busy(queue_timeout), queue_timeout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_workers_a_storm_of_leavers_leaves_nothing_behind() {
    a_storm_of_leavers_leaves_nothing_behind(busy(Duration::from_secs(600))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_workers_each_is_counted_once_at_every_moment() {
    each_is_counted_once_at_every_moment(busy(Duration::from_millis(300))).await;
}
