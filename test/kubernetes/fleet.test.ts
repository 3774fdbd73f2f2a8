import { expect } from 'chai';
import { noRedis } from '../../local-cluster/redis-server.ts';
import { noFakeTime } from '../support/chaos/faults/clock-jump.ts';
import { FleetArena } from '../support/chaos/fleet/fleet-arena.ts';
import { fleetChaosRun } from '../support/chaos/fleet/fleet-run.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

/** The long form, with a worker on a cluster of its own: `script/chaos fleet`. */
const [CLAIMS, FAULTS] = [100, 6];
const LONGEST_MS = 1_000;
/** Ends a run that does not get on. */
const AT_MOST_MS = 10 * 60_000;

describe('a fleet of a manager with three replicas and two workers', function () {
  const cluster = onTheControlPlane();
  let arena: FleetArena;

  before(async function () {
    const missing = noRedis ?? noFakeTime;
    if (missing !== undefined) skipBecause(this, missing);
    arena = await FleetArena.start({
      ...{ poolReplicas: 6, memberReplicas: 2 },
      grounds: { manager: cluster() },
    });
  });
  after(async () => {
    await arena?.stop();
  });

  const clients = (): readonly HttpClient[] => arena.managers.map(({ client }) => client(''));

  it('promotes a key on one replica, and revokes it on another', async () => {
    const [one, other] = clients() as [HttpClient, HttpClient];
    const { json: made } = await one.post('/api-keys', {});
    const path = `/admin/api-keys/${String(made['name']).replace('/', '%2F')}/promote`;
    const promoted = await untilAnswered(200, () => other.post(path));
    expect(promoted.json.status).to.equal('promoted');
    const isTold = async (status: number): Promise<void> => {
      for (const worker of arena.workers) {
        const client = worker.client(String(made['apiKey']));
        await eventually(
          async () => (await client.get('/sandboxpools')).status === status,
          `the key is answered with ${status} by ${worker.clusterId}`,
        );
      }
    };
    await isTold(200);
    await eventually(
      async () => (await one.post(path)).json.errorCode === 'ALREADY_GLOBAL',
      'the other replica knows that it is global',
    );
    await one.delete(`/api-keys/${String(made['keyId'])}`);
    await isTold(401);
  });

  it('keeps every promise while links break, daemons die and clocks differ', async function () {
    this.timeout(0); // of many waits, each of which has an end
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);
    const { violations, claims, disturbances, keys } = await fleetChaosRun(arena, {
      ...{ seed, claims: CLAIMS, faults: FAULTS, atMostMs: AT_MOST_MS },
      ...{ clients: 4, longestMs: LONGEST_MS, keysWithinMs: 2 * NEVER_COMES_MS },
      linkedWithinMs: NEVER_COMES_MS,
    });
    expect(violations.map(({ promise, what }) => `${promise}: ${what}`)).to.deep.equal([]);
    expect(claims).to.be.at.least(CLAIMS);
    expect(disturbances).to.have.lengthOf(FAULTS);
    expect(keys.promoted).to.be.above(0);
  });
});
