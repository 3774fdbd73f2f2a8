import { expect } from 'chai';
import fc from 'fast-check';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  InFlightGate,
  holdMs,
  MOST_OF_TENANT_IN_LONG_TURN,
  Overload,
} from '../../src/http/limits/overload.ts';
import { within } from '../support/harness/a-daemon.ts';
import { connectRaw } from '../support/harness/http-client.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/** Of the tenant whose key is its name; keys that begin with `?` are not known. */
const requestOf = (key: string): IncomingMessage =>
  ({
    url: '/sandboxes',
    method: 'GET',
    headers: { 'service-api-key': key },
    socket: Object.assign(new EventEmitter(), { pause: () => {}, resume: () => {} }),
  }) as unknown as IncomingMessage;

const anAnswer = (): ServerResponse =>
  Object.assign(new EventEmitter(), {
    writeHead: () => {},
    end: () => {},
  }) as unknown as ServerResponse;

describe('a long turn of the event loop', () => {
  const anOverload = (maxInFlight = 1_000) =>
    new Overload({
      metrics: silentMetrics,
      gate: new InFlightGate(maxInFlight),
      turn: { leastPerTurn: 0, maxTurnMs: -1 }, // each is long from its first request on
      tenantOf: ({ headers }) => {
        const key = String(headers['service-api-key']);
        return key.startsWith('?') ? undefined : key;
      },
    });
  const isTaken = (overload: Overload, key: string): boolean =>
    !overload.shedLoad(requestOf(key), anAnswer());

  it('takes the first requests of a tenant, whatever another one and strangers send', () => {
    const floods = fc.array(fc.constantFrom('noisy', '?1', '?2', 'quiet'), { maxLength: 600 });
    fc.assert(
      fc.property(floods, (keys) => {
        const overload = anOverload();
        const ofQuiet = keys
          .map((key) => [key, isTaken(overload, key)] as const)
          .filter(([key]) => key === 'quiet')
          .map(([, taken]) => taken);
        expect(ofQuiet.slice(0, MOST_OF_TENANT_IN_LONG_TURN)).not.to.include(false);
        expect(ofQuiet.slice(MOST_OF_TENANT_IN_LONG_TURN)).not.to.include(true);
      }),
    );
  });

  it('takes no request whose key is not known', () => {
    expect(isTaken(anOverload(), '?guessed')).to.equal(false);
  });

  it('takes 256 requests and no more of all tenants together', () => {
    const overload = anOverload();
    const taken = Array.from({ length: 1_000 }, (_, n) => isTaken(overload, `tenant-${n}`));
    expect(taken.filter(Boolean)).to.have.length(256);
  });

  it('does not count in the next one', async () => {
    const overload = anOverload();
    for (let n = 0; n < 20; n += 1) isTaken(overload, 'noisy');
    expect(isTaken(overload, 'noisy')).to.equal(false);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(isTaken(overload, 'noisy')).to.equal(true);
  });

  it('takes a request of another tenant on the wire too', async () => {
    const server = await aServer({ limits: { leastPerTurn: 2, maxTurnMs: -1 } });
    const ask = (key: string | undefined): string =>
      `GET /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${key ?? ''}\r\n\r\n`;
    const connection = await connectRaw(server.port);
    // Of one connection, so that all are surely read in the same turn.
    connection.socket.write(ask(server.stranger.key).repeat(24) + ask(server.tenant.key));
    const statuses = await within('all are answered', () => {
      const found = connection.received().match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
      return found.length === 25 ? found : undefined;
    });
    expect(statuses.slice(0, 24).filter((status) => status === '200')).to.have.length(18);
    expect(statuses.at(-1)).to.equal('200');
    connection.socket.destroy();
    await server.stop();
  });
});

describe('connections whose requests were turned away', () => {
  it('are not read from again all at once', () => {
    const times = Array.from({ length: 1_024 }, (_, nth) => holdMs(1, nth));
    expect(Math.min(...times)).to.equal(100);
    expect(Math.max(...times)).to.be.below(200);
    expect(new Set(times).size).to.equal(64);
    expect(holdMs(1_000, 0)).to.equal(1_000);
  });
});

describe('operations under way', () => {
  it('leave half of the places to others than one tenant, whatever it asks for', async () => {
    const gate = new InFlightGate(64);
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const begun: Promise<void>[] = [];
    for (let n = 0; n < 1_000; n += 1)
      begun.push(gate.pass({ operation: `kind-${n}`, tenant: 'noisy' }, () => ended));
    const results = Promise.allSettled(begun);
    expect(await rejection(begun.at(-1) ?? Promise.resolve())).to.include({ code: 'UNAVAILABLE' });
    expect(gate.full).to.equal(false);
    expect(await gate.pass({ operation: 'list', tenant: 'quiet' }, () => 'listed')).to.equal(
      'listed',
    );
    end();
    expect((await results).filter(({ status }) => status === 'fulfilled')).to.have.length(32);
  });
});
