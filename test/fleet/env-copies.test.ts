import { expect } from 'chai';
import type { ClusterRequest } from '../../src/fleet/link/cluster-client.ts';
import { envCopies } from '../../src/fleet/link/env-copies.ts';

const owner = { namespace: 'team-blue', team: 'blue', user: 'ada' };
const place = {
  members: 2,
  bytes: 1_000,
  clusterId: 'west',
  owner,
  name: 'e',
};

const anAnswer = (counts: object): object => ({
  env: {
    ...owner,
    spec: { clusters: [{ members: [{ name: 'm', config: {} }] }] },
    status: {
      clusters: [
        {
          observedMembers: [
            {
              name: 'm',
              state: 'Active',
              idleCount: 0,
              runningCount: 0,
              desiredReplicas: 0,
              currentReplicas: 0,
              pendingRequests: 0,
              scaleUpHeadroom: Number.MAX_SAFE_INTEGER,
              updatedReplicas: 0,
              ...counts,
            },
          ],
        },
      ],
    },
  },
  editable: { templateRef: { name: 't' }, overrides: {}, labels: {}, annotations: {} },
});

const copiesThatAnswer = (body: object, tag = '"1"') => {
  const asked: ClusterRequest[] = [];
  const copies = envCopies({
    links: { list: () => [], invited: () => [], find: () => undefined },
    client: {
      ask: async (request) => {
        asked.push(request);
        return { body, tag };
      },
    },
  });
  return { asked, copies };
};

describe('copies of envs on other clusters', () => {
  it('are requested with a gated key, within the bounds of what the env can contain', async () => {
    const { asked, copies } = copiesThatAnswer(anAnswer({}));
    await copies.read(place);
    await copies.create(place, {
      templateRef: { name: 't' },
      overrides: {},
      labels: {},
      annotations: {},
    });
    await copies.endMember(place, 'm', true);
    expect(asked[0]?.bounds).to.deep.equal({
      mostBytes: 64 * 1_024 + 3 * 32 * 1_024 + 3 * 1_000,
      mostValues: 8_192 + 3 * 128,
    });
    const caller = { ...owner, role: 'user', keyId: 'fleet-envs/blue/ada', gated: true };
    expect(asked.map((each) => each.caller)).to.deep.equal([caller, caller, caller]);
  });

  it("omit an entity tag longer than the service's own", async () => {
    const tagOf = async (tag: string) =>
      (await copiesThatAnswer(anAnswer({}), tag).copies.read(place))?.tag;

    expect(await tagOf('x'.repeat(256))).to.equal('x'.repeat(256));
    expect(await tagOf('x'.repeat(257))).to.equal('');
  });

  it('show no more instances than pools can have, whatever their cluster reports', async () => {
    const honest = await copiesThatAnswer(anAnswer({ idleCount: 10_000 })).copies.read(place);
    expect(honest?.members[0]).to.include({ idle: 10_000, headroom: Number.MAX_SAFE_INTEGER });
    for (const field of ['idleCount', 'runningCount', 'desiredReplicas', 'pendingRequests']) {
      const { copies } = copiesThatAnswer(anAnswer({ [field]: Number.MAX_SAFE_INTEGER }));
      const refused = await copies.read(place).catch((error: unknown) => error);
      expect(refused, field).to.include({ code: 'CLUSTER_UNAVAILABLE' });
    }
  });
});
