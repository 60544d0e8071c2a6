//! Workers that come and go by what NATS says.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde_json::json;

use super::models::Served;
use super::shared::Shared;
use crate::cluster::event::Announcement;
use crate::cluster::subscribe::{Joined, Roster};
use crate::proxy::engine::EngineUrl;

impl Roster for Shared {
    fn is_configured(&self, url: &EngineUrl) -> bool {
        self.configured.contains(url)
    }

    fn join(&self, url: EngineUrl, said: &Announcement) -> io::Result<Joined> {
        let configured = self.is_configured(&url);
        let all = self.members.all();
        let there = all.iter().find(|member| *member.url() == url);
        let id = match there {
            Some(member) if configured => member.id,
            _ => self.members.join(url, said.worker_type.as_deref())?,
        };
        let watched = self.monitor.member(id);
        let watched = watched.ok_or_else(|| io::Error::other("it was taken out meanwhile"))?;
        Ok(Joined {
            id,
            watched,
            configured,
        })
    }

    fn tells(&self, id: u64, said: &Announcement) {
        let all = self.members.all();
        let member = all.iter().find(|member| member.id == id);
        let (Some(member), Some(models)) = (member, &said.models) else {
            return;
        };
        // What the worker answers when it is asked counts for more.
        if member.served() == Served::Unknown {
            let entry = |name: &String| (name.clone(), json!({ "id": name, "object": "model" }));
            let listed: BTreeMap<_, _> = models.iter().map(entry).collect();
            member.serves(Served::Listed(Arc::new(listed)));
        }
    }

    fn leave(&self, id: u64) {
        self.members.remove(id);
    }

    fn is_well(&self, id: u64) -> bool {
        let all = self.members.all();
        all.iter().any(|member| member.id == id && member.is_well())
    }
}
