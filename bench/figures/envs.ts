import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { expectAll } from '../load.ts';
import { pause } from '../process-facts.ts';
import type { Service } from '../service.ts';

const MEMBERS = 50;
const ENV = 'many';
/** Of the single pools' changes. */
const IN_FLIGHT = 8;
const LOOK_EVERY_MS = 2;
const DEADLINE_MS = 60_000;

export const envs: Figure = {
  name: 'envs',
  about: `PATCH of an env with ${MEMBERS} members until every pool has the new revision, against ${MEMBERS} PUTs of single pools`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.call(
        {
          method: 'POST',
          path: '/envs',
          body: JSON.stringify({ name: ENV, templateRef: { name: 'default' } }),
        },
        201,
      );
      for (let at = 0; at < MEMBERS; at += 1) {
        await service.call(
          {
            method: 'POST',
            path: `/envs/${ENV}/sandboxpools`,
            body: JSON.stringify({ name: `member-${at}`, replicas: 0 }),
          },
          201,
        );
        await service.createPool(`pool-${at}`, 0);
      }
      let seconds = 60; // each change is another one
      const overrides = (): string =>
        JSON.stringify({ overrides: { defaultStartupTimeout: `${(seconds += 1)}s` } });
      const ours = async (): Promise<number> => {
        await daemon.calm();
        const before = await revisionsOf(service);
        const began = performance.now();
        await service.call({ method: 'PATCH', path: `/envs/${ENV}`, body: overrides() }, 200);
        await untilNew(service, before);
        return performance.now() - began;
      };
      const theirs = async (): Promise<number> => {
        await daemon.calm();
        const body = overrides();
        const asks = Array.from({ length: MEMBERS }, (_, at): Ask => ({
          method: 'PUT',
          path: `/sandboxpools/pool-${at}`,
          key: '',
          body,
        }));
        const began = performance.now();
        expectAll(await bench.load.closed(service.port, service.keyed(asks), IN_FLIGHT), 200);
        return performance.now() - began;
      };
      await ours();
      await theirs();
      const pairs = await inPairs(bench, { ours, theirs });
      return [
        {
          name: `PATCH of an env until its ${MEMBERS} pools have the new revision / ${MEMBERS} pool PUTs`,
          unit: 'ms',
          better: 'less',
          reach: 1.3,
          beyond: 1,
          ...pairs,
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

const revisionsOf = async (service: Service): Promise<readonly (string | undefined)[]> => {
  const { env } = JSON.parse(
    await service.call({ method: 'GET', path: `/envs/${ENV}` }, 200),
  ) as EnvAnswer;
  return env.status.clusters.flatMap(({ observedMembers }) =>
    observedMembers.map(({ updateRevision }) => updateRevision),
  );
};

const untilNew = async (
  service: Service,
  before: readonly (string | undefined)[],
): Promise<void> => {
  const deadline = performance.now() + DEADLINE_MS;
  while ((await revisionsOf(service)).some((revision, at) => revision === before[at])) {
    if (performance.now() > deadline) throw new Error('the members do not follow');
    await pause(LOOK_EVERY_MS);
  }
};

interface EnvAnswer {
  readonly env: {
    readonly status: {
      readonly clusters: readonly {
        readonly observedMembers: readonly { readonly updateRevision?: string }[];
      }[];
    };
  };
}
