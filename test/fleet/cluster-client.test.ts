import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { ClusterClient, type ClusterAnswer } from '../../src/fleet/link/cluster-client.ts';
import { ClusterBusy } from '../../src/model/fleet/cluster-refusals.ts';
import { IDENTITY_HEADER } from '../../src/model/fleet/identity-header.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';

describe("a manager's own requests to a cluster", () => {
  /** Whose requests wait for their answer at the cluster, with how to give it. */
  let held: { readonly user: string; readonly answer: () => void }[];
  let isOpen: boolean;
  let isLimited: boolean;
  let server: Server;
  let clock: TestClock;
  let client: ClusterClient;

  beforeEach(async () => {
    [held, isOpen, isLimited, clock] = [[], false, false, new TestClock()];
    server = createServer((request, response) => {
      const answer = (): void => {
        if (isLimited) response.statusCode = 429;
        response.end(isLimited ? '{"error":"too many","errorCode":"RATE_LIMITED"}' : '{}');
      };
      if (isOpen) answer();
      else held.push({ user: String(request.headers[IDENTITY_HEADER]), answer });
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const route = {
      clusterId: 'west',
      linkId: 'l',
      latencyMs: () => 1,
      dial: () => connect(port, '127.0.0.1'),
      identify: ({ user }: { readonly user: string }) => user,
      probe: () => () => undefined,
    };
    client = new ClusterClient({ links: { find: () => route }, clock });
  });

  afterEach(async () => {
    client.stop();
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  });

  const ask = (user: string, isLook = false): Promise<ClusterAnswer> =>
    client.ask({
      clusterId: 'west',
      caller: { namespace: 'team-blue', team: 'blue', user, role: 'user', keyId: 'k' },
      method: 'GET',
      path: '/envs/e',
      isLook,
    });
  const asks = (user: string, count: number, isLook?: boolean) =>
    Array.from({ length: count }, () => ask(user, isLook));
  const heldOf = (name: string): number => held.filter(({ user }) => user === name).length;
  const isHeld = (user: string, count: number): Promise<void> =>
    eventually(() => heldOf(user) === count, `${count} of ${user} are at the cluster`);
  const goOn = (): void => {
    isOpen = true;
    for (const { answer } of held) answer();
  };
  /** How many were refused since the cluster is asked too much. */
  const refusedOf = async (asked: readonly Promise<unknown>[]): Promise<number> => {
    const outcomes = await Promise.allSettled(asked);
    return outcomes.filter(
      (each) => each.status === 'rejected' && each.reason instanceof ClusterBusy,
    ).length;
  };

  it('are limited per tenant, and wait for their turn', async () => {
    const ofAda = asks('ada', 30);
    await isHeld('ada', 16);
    const ofBob = asks('bob', 3);
    await isHeld('bob', 3);
    expect(heldOf('ada')).to.equal(16);
    goOn();
    await Promise.all([...ofAda, ...ofBob]);
  });

  it('are refused if too many wait, or for too long', async () => {
    const underWay = asks('ada', 16);
    await isHeld('ada', 16);
    const waiting = asks('ada', 128);
    expect(await refusedOf([ask('ada')])).to.equal(1);
    clock.advance(5_000);
    expect(await refusedOf(waiting)).to.equal(128);
    goOn();
    expect(await refusedOf(underWay)).to.equal(0);
    expect(clock.waiting).to.equal(0);
  });

  it('hide that a cluster limits the rate of a key', async () => {
    isLimited = true;
    goOn();
    expect(await refusedOf([ask('ada'), ask('ada', true)])).to.equal(2);
  });

  it('that only read skip the queue, with a limit per tenant', async () => {
    const users = ['a', 'b', 'c', 'd'];
    const underWay = users.flatMap((user) => asks(user, 20));
    for (const user of users) await isHeld(user, 16);
    const looks = [...asks('eve', 1, true), ...asks('ada', 16, true)];
    await isHeld('eve', 1);
    await isHeld('ada', 16);
    expect(await refusedOf([ask('ada', true)])).to.equal(1);
    goOn();
    expect(await refusedOf([...looks, ...underWay])).to.equal(0);
  });
});
