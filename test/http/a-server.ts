import type { Requests } from '../../src/contracts/coordination/requests.ts';
import type { Log } from '../../src/contracts/log.ts';
import type { FleetDeps } from '../../src/fleet/routing/fleet-router.ts';
import { managerStages } from '../../src/fleet/routing/manager-stages.ts';
import type { AdmissionDeps } from '../../src/http/limits/admission.ts';
import type { AdmissionBounds } from '../../src/http/limits/bounds.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import {
  createHttpServer,
  type HttpServer,
  type HttpServerDeps,
} from '../../src/http/server/http-server.ts';
import { anAdmission } from '../support/fakes/an-admission.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { watchAnswers } from '../support/harness/watched-answers.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A listening server over an engine of its own, with a key for each sort of caller. */
export interface TestServer {
  readonly operations: Engine;
  readonly port: number;
  readonly log: LogLine[];
  readonly tenant: HttpClient;
  /** Of the same team as `tenant`. */
  readonly colleague: HttpClient;
  /** Of another team. */
  readonly stranger: HttpClient;
  readonly admin: HttpClient;
  readonly anyone: HttpClient;
  /** Makes the tenant's pool `shells`, and waits until it is filled. */
  readonly makeShells: (replicas: number) => Promise<void>;
  readonly leave: () => void;
  readonly renew: HttpServer['renew'];
  readonly accept: HttpServer['accept'];
  readonly stop: (graceMs?: number) => Promise<void>;
}

export const aServer = async ({
  trustedProxies = [],
  requests,
  log: givenLog,
  metrics = silentMetrics,
  tracer,
  traceScope,
  audit,
  clusterId = 'local',
  sunset,
  fleet,
  answers,
  keyRates,
  turns,
  pace,
  limits,
  gating,
  sessionOf,
  console,
  ...given
}: Partial<
  Omit<HttpServerDeps, 'watchers' | 'terms' | 'people' | 'admission'> &
    NonNullable<HttpServerDeps['people']> &
    HttpServerDeps['watchers'] &
    HttpServerDeps['terms'] &
    Pick<AdmissionDeps, 'answers' | 'keyRates' | 'turns' | 'pace'>
> & {
  readonly limits?: Partial<AdmissionBounds>;
  /** Makes it a manager. */
  readonly fleet?: FleetDeps;
  readonly operations?: Engine;
  readonly trustedProxies?: readonly string[];
  readonly requests?: Requests;
} = {}): Promise<TestServer> => {
  const operations = given.operations ?? anEngine();
  if (requests) Object.assign(operations.coordination, requests);
  await operations.start();
  const log: LogLine[] = [];
  const keys = {
    tenant: await operations.key('blue', 'ada'),
    colleague: await operations.key('blue', 'bob'),
    stranger: await operations.key('red', 'eve'),
    admin: await operations.key('ops', 'root', 'admin'),
  };
  const { clock } = operations;
  const clients =
    given.clients ?? clientsOf({ operations, clock, log: recording(log), trustedProxies });
  const http = createHttpServer({
    operations,
    clock,
    watchers: { log: givenLog ?? recording(log), metrics, tracer, traceScope, audit },
    terms: { clusterId, sunset, manager: fleet && managerStages(fleet, operations) },
    admission: anAdmission({
      ...{ clients, metrics, keyRates, turns, pace, ...(answers ? { answers } : {}) },
      log: givenLog ?? recording(log),
      bounds: limits,
    }),
    people: { gating, ...(sessionOf ? { sessionOf } : {}), console },
    ...given,
    clients,
  });
  const checkAnswers = watchAnswers(http.server);
  const { port } = await http.start({ host: '127.0.0.1', port: 0 });
  const asking = {
    tenant: new HttpClient(port, keys.tenant),
    colleague: new HttpClient(port, keys.colleague),
    stranger: new HttpClient(port, keys.stranger),
    admin: new HttpClient(port, keys.admin),
    anyone: new HttpClient(port),
  };
  return {
    operations,
    port,
    log,
    ...asking,
    makeShells: async (replicas) => {
      const pool = { name: 'shells', templateName: 'default', replicas };
      await asking.tenant.post('/sandboxpools', pool);
      await operations.settled();
    },
    leave: () => {
      http.leave();
    },
    renew: (tls) => {
      http.renew(tls);
    },
    accept: (connection) => {
      http.accept(connection);
    },
    stop: async (graceMs = 1_000) => {
      for (const client of Object.values(asking)) client.close();
      await http.stop(graceMs);
      checkAnswers();
    },
  };
};

const recording = (lines: LogLine[]): Log => {
  const at =
    (level: string) =>
    (fields: Readonly<Record<string, unknown>>, event: string): void =>
      void lines.push({ level, fields, event });
  return {
    detailed: true,
    trace: () => undefined,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
};
