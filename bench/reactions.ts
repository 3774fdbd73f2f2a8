import { pause } from './process-facts.ts';
import type { Service } from './service.ts';

/** Refused claims a round. */
const REFUSED = 20;
/** After this a group that was just made is at rest. */
const SETTLED_MS = 2_000;
const LOOK_EVERY_MS = 2;
const DEADLINE_MS = 60_000;

/**
 * From the answer that refuses a claim to the moment at which a list shows the next instance of its
 * pool, in milliseconds: of envs of one member each, empty and at rest, so that each is refused
 * once.
 */
export const reactions = async (service: Service, template: string): Promise<readonly number[]> => {
  const names = Array.from({ length: REFUSED }, (_, at) => `growing-${at}`);
  for (const name of names) {
    await said(service, 'POST', '/envs', { name, templateRef: { name: template } });
    await said(service, 'POST', `/envs/${name}/sandboxpools`, {
      name,
      replicas: 0,
      maxReplicas: 1,
    });
    await said(service, 'PUT', `/envs/${name}/autoscaling/groups/${name}`, {
      scaleUpPolicy: { idleThresholdSeconds: 0 },
    });
  }
  await pause(SETTLED_MS);
  const latencies: number[] = [];
  for (const name of names) {
    const refused = await service.answerTo({
      method: 'POST',
      path: '/sandboxes',
      body: JSON.stringify({ poolName: name }),
    });
    const began = performance.now();
    if (refused.status !== 429)
      throw new Error(`a claim from an empty pool was answered with ${refused.status}`);
    await until(`${name} grows`, () => isLaunched(service, name));
    latencies.push(performance.now() - began);
    await service.untilIdle(name, 1);
  }
  for (const name of names)
    await service.call({ method: 'DELETE', path: `/envs/${name}?force=true` }, 200);
  for (const name of names)
    await until(
      `${name} goes`,
      async () => (await service.answerTo({ method: 'GET', path: `/envs/${name}` })).status === 404,
    );
  return latencies;
};

/**
 * A replica that has just started counts what is used, and learns of templates, before it makes
 * anything.
 */
const said = async (
  service: Service,
  method: string,
  path: string,
  body: object,
): Promise<void> => {
  await until(`${method} ${path}`, async () => {
    const answer = await service.answerTo({ method, path, body: JSON.stringify(body) });
    if (answer.status >= 300 && answer.status !== 503 && answer.status !== 404)
      throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.body}`);
    return answer.status < 300;
  });
};

/** Whether it is starting, or idle already. */
const isLaunched = async (service: Service, name: string): Promise<boolean> => {
  for (const phase of ['Starting', 'Idle']) {
    const { total } = JSON.parse(
      await service.call(
        { method: 'GET', path: `/sandboxes?poolName=${name}&phase=${phase}` },
        200,
      ),
    ) as { readonly total: number };
    if (total > 0) return true;
  }
  return false;
};

const until = async (what: string, look: () => Promise<boolean>): Promise<void> => {
  const deadline = performance.now() + DEADLINE_MS;
  while (!(await look())) {
    if (performance.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
    await pause(LOOK_EVERY_MS);
  }
};
