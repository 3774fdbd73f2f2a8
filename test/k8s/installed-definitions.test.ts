import { expect } from 'chai';
import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { ApiRefused, ApiUnreachable } from '../../src/k8s/api/api-errors.ts';
import {
  DEFINITIONS_ANNOTATION,
  DEFINITIONS_VERSION,
  InstalledDefinitions,
} from '../../src/k8s/records/installed-definitions.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { turns } from '../support/harness/turns.ts';

const POOLS = 'sandboxpools.sandpool.dev';
const LOOK_MS = 30_000;

describe('a replica with custom resource definitions of another version', () => {
  const world = async (versions: Record<string, string | undefined> = {}) => {
    const clock = new TestClock();
    const problems = new Map<string, string>();
    const state = { fault: undefined as Error | undefined };
    const list: ApiClient['list'] = async (_path, { fieldSelector = '' }) => {
      if (state.fault) throw state.fault;
      const name = fieldSelector.replace('metadata.name=', '');
      const version = name in versions ? versions[name] : String(DEFINITIONS_VERSION);
      const annotations = { [DEFINITIONS_ANNOTATION]: version };
      const items = version === 'missing' ? [] : [{ metadata: { name, annotations } }];
      return { metadata: { resourceVersion: '1' }, items };
    };
    const definitions = new InstalledDefinitions({
      api: { list } as ApiClient,
      clock,
      log: quietLog,
      outdated: (object, why) => {
        if (why === undefined) problems.delete(object);
        else problems.set(object, why);
      },
    });
    await definitions.start();
    const look = async (): Promise<void> => {
      clock.advance(LOOK_MS);
      await turns();
    };
    return { versions, state, problems, definitions, look };
  };

  it('leads nothing if a definition is older, unversioned or missing', async () => {
    for (const [version, words] of [
      [String(DEFINITIONS_VERSION - 1), 'is older'],
      [undefined, 'is older'],
      ['missing', 'is missing'],
    ] as const) {
      const { versions, problems, look } = await world({ [POOLS]: version });
      expect([...problems.keys()]).to.deep.equal([`the definition ${POOLS}`]);
      expect([...problems.values()][0]).to.contain(words);

      versions[POOLS] = String(DEFINITIONS_VERSION);
      await look();
      expect(problems.size).to.equal(0);
    }
  });

  it('works if the definitions are newer', async () => {
    const { problems } = await world({ [POOLS]: String(DEFINITIONS_VERSION + 1) });
    expect(problems.size).to.equal(0);
  });

  it('keeps its last result while the API server is unavailable, and checks again later', async () => {
    const { versions, state, problems, definitions, look } = await world();
    versions[POOLS] = '0';
    state.fault = new ApiUnreachable('connection refused');
    await look();
    expect([problems.size, definitions.warnings()]).to.deep.equal([0, []]);

    state.fault = undefined;
    await look();
    expect(problems.size).to.equal(1);
  });

  it('warns if it lacks the right to read them', async () => {
    const { state, problems, definitions, look } = await world();
    const cause = { status: 403, reason: 'Forbidden', message: 'no', causes: [] };
    state.fault = new ApiRefused({ ...cause, retryAfterSeconds: undefined });
    await look();
    expect(problems.size).to.equal(0);
    expect(definitions.warnings()[0]).to.contain('has no right to list them');

    state.fault = undefined;
    await look();
    expect(definitions.warnings()).to.deep.equal([]);
  });

  it('stops checking when it is stopped', async () => {
    const { versions, problems, definitions, look } = await world();
    definitions.stop();
    versions[POOLS] = '0';
    await look();
    expect(problems.size).to.equal(0);
  });
});
