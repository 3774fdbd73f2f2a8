import { readFileSync } from 'node:fs';

/**
 * Atomic. Each is a file in `lua/` whose header gives its arguments, result and guarantee. Metrics
 * use these names.
 */
export const OPERATIONS = {
  activity: ['begin_marks', 'ended', 'expire', 'mark_ended', 'touch', 'work'],
  audit: ['add_audit'],
  claims: ['admit_claim', 'beat_waiting', 'count_waiting', 'join_waiting', 'leave_waiting'],
  console: [
    'console_sessions',
    'end_console_session',
    'end_console_sessions_of',
    'open_console_session',
    'use_console_session',
  ],
  events: ['add_events', 'read_events'],
  fleet: ['hold_starts', 'release_start'],
  history: [
    'count_by_namespace',
    'decisions_of',
    'events_of',
    'events_of_pool',
    'find',
    'forget',
    'make_room',
    'match_groups',
    'record',
    'record_decision',
    'record_events',
    'record_pool_events',
    'total',
    'trim',
    'walk',
  ],
  leases: ['lease_heartbeat', 'next_epoch'],
  quotas: [
    'begin_rebuild',
    'confirm',
    'end_rebuild',
    'release',
    'reserve',
    'reconcile',
    'still_reserved',
    'unreconciled',
    'used',
    'withdraw',
  ],
  rates: ['count'],
  requests: [
    'give_up_request',
    'hold_request',
    'keep_answer',
    'note_shares',
    'open_request',
    'place_request',
    'trim_answers',
  ],
  tokens: ['issue_token', 'peek_token', 'redeem_token'],
  webhooks: ['dead_letters', 'forget_dead_letter', 'keep_dead_letter'],
} as const;

export type Operation = (typeof OPERATIONS)[keyof typeof OPERATIONS][number];

export interface Script {
  readonly operation: Operation;
  readonly lua: string;
}

const LUA = new URL('lua/', import.meta.url);
const INCLUDE = /^--- @include "(\w+)"$/;

let scripts: readonly Script[] | undefined;

/** Reads the files once for each process. */
export const loadScripts = (): readonly Script[] =>
  (scripts ??= Object.entries(OPERATIONS).flatMap(([folder, operations]) =>
    operations.map((operation) => ({
      operation,
      lua: resolved(`${folder}/${operation}.lua`, new Set()).join('\n'),
    })),
  ));

/** Inserts each `include/<name>.lua` once. */
const resolved = (file: string, included: Set<string>): readonly string[] =>
  readFileSync(new URL(file, LUA), 'utf8')
    .split('\n')
    .flatMap((line) => {
      const name = INCLUDE.exec(line)?.[1];
      if (name === undefined) return [line];
      if (included.has(name)) return [];
      included.add(name);
      return resolved(`include/${name}.lua`, included);
    });
