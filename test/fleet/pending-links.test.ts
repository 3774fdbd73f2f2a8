import { expect } from 'chai';
import { WebSocket } from 'ws';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';
import { PendingLinks } from '../../src/fleet/pending-links.ts';
import type { ManagerLink } from '../../src/fleet/manager-link.ts';

describe('links that have yet to prove whose they are', () => {
  const aLink = (cut: unknown[], name: string): ManagerLink =>
    ({ cut: () => void cut.push(name) }) as unknown as ManagerLink;

  it('make room for each other: first the oldest of an address that has too many', () => {
    const cut: unknown[] = [];
    const links = new PendingLinks();
    links.add(aLink(cut, 'other'), 'b');
    for (let n = 0; n < 10; n += 1) links.add(aLink(cut, `a${n}`), 'a');
    expect(cut).to.deep.equal(['a0', 'a1']);
    for (let n = 0; n < 30; n += 1) links.add(aLink(cut, `c${n}`), `c${n}`);
    expect(cut.slice(2)).to.deep.equal(['a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']);
  });

  it('keep nobody out who proves it', async () => {
    const fleet = await FleetUnderTest.start();
    const idle: WebSocket[] = [];
    try {
      for (let n = 0; n < 100; n += 1) {
        const socket = new WebSocket(`ws://127.0.0.1:${fleet.port}/fleet/link`);
        socket.on('error', () => undefined);
        idle.push(socket);
      }
      await eventually(
        () => idle.filter(({ readyState }) => readyState === WebSocket.CLOSED).length >= 92,
        'too many are cut',
        30_000,
      );
      await fleet.join({ clusterId: 'w1', serve: () => undefined });
    } finally {
      for (const socket of idle) socket.terminate();
      await fleet.stop();
    }
  });
});
