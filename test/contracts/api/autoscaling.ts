import { expect } from 'chai';
import { eventually } from '../../support/harness/eventually.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';
import { aTenantOf, type Tenant } from './belongings.ts';
import { aName, Clients, type RunningService, templateDocument } from './running-service.ts';

interface Decision {
  readonly cause: string;
  readonly limitedBy: readonly string[];
  readonly seen: { readonly pendingRequests: number };
  readonly changes: readonly {
    readonly member: string;
    readonly from: number;
    readonly to: number;
    readonly outcome: string;
  }[];
}

/** `ScalingLimited` of an env as a line. */
const conditionIn = (envelope: string): string => {
  const {
    env: { status },
  } = JSON.parse(envelope) as {
    readonly env: {
      readonly status: {
        readonly conditions: readonly {
          readonly type: string;
          readonly status: string;
          readonly reason: string;
          readonly message: string;
        }[];
      };
    };
  };
  const found = status.conditions.find(({ type }) => type === 'ScalingLimited');
  return `${found?.status} ${found?.reason} ${found?.message}`;
};

/** Fast enough to be seen: what nobody asks for goes within seconds. */
const SHORT = {
  enabled: true,
  minReplicas: 0,
  maxReplicas: 3,
  scaleUpPolicy: {
    mode: 'Aggressive',
    cooldownSeconds: 0,
    idleThresholdSeconds: 0,
    idleZeroQuietWindowSeconds: 10,
    saturationCooldownSeconds: 5,
  },
  scaleDownPolicy: { idleTimeoutSeconds: 5, stabilizationSeconds: 0, protectionWindowSeconds: 0 },
};

/** An env sizes itself, by itself and in real time. */
export const autoscalingSuite = (name: string, service: () => RunningService): void => {
  describe(`a used env: ${name}`, function () {
    const clients = new Clients(service);
    const [template, env, member] = [aName('template'), aName('env'), aName('member')];
    let tenant: Tenant;
    const ask = () => tenant.ask();
    const replicas = async (): Promise<unknown> =>
      (
        (await ask().get(`/sandboxpools/${member}`)).json.template?.['spec'] as
          | Readonly<Record<string, unknown>>
          | undefined
      )?.['replicas'];
    const decisions = async (): Promise<readonly Decision[]> =>
      (
        JSON.parse(
          (
            await untilAnswered(200, () =>
              ask().get(`/envs/${env}/autoscaling/groups/${member}/decisions`),
            )
          ).text,
        ) as { readonly items: readonly Decision[] }
      ).items;

    before(async () => {
      tenant = await aTenantOf(service(), clients, 'sized');
      await untilAnswered(201, () =>
        clients.admin.post('/admin/sandbox-templates', {
          crdJson: templateDocument(template, service()),
        }),
      );
      await untilAnswered(201, () =>
        ask().post('/envs', {
          name: env,
          templateRef: { name: template },
          mode: 'WarmPool',
          overrides: {},
          labels: {},
        }),
      );
      await untilAnswered(201, () =>
        ask().post(`/envs/${env}/sandboxpools`, {
          name: member,
          replicas: 0,
          minReplicas: 0,
          maxReplicas: 3,
        }),
      );
      await untilAnswered(200, () => ask().put(`/envs/${env}/autoscaling/groups/${member}`, SHORT));
    });
    after(async () => {
      await ask().delete(`/envs/${env}?force=true`);
      clients.close();
    });

    it('reports once why it cannot grow, and shows a condition in the meantime', async () => {
      await untilAnswered(200, () =>
        ask().put(`/envs/${env}/autoscaling/groups/${member}`, { ...SHORT, maxReplicas: 0 }),
      );
      const most = "the group's maximum is 0";
      const limited = async (): Promise<unknown> =>
        conditionIn((await untilAnswered(200, () => ask().get(`/envs/${env}`))).text);
      const refused = async (): Promise<void> => {
        await untilAnswered(429, () => ask().post('/sandboxes', { poolName: member }));
      };

      await refused();
      await eventually(
        async () => (await limited()) === `True MaxReplicasReached group ${member}: ${most}`,
        'the condition says so',
      );
      await refused();
      const told = async () =>
        (await decisions()).filter(({ limitedBy }) => limitedBy.includes(most));
      await eventually(async () => (await told()).length > 0, 'a decision says so');
      expect((await told()).map(({ changes }) => changes)).to.deep.equal([[]]);

      await untilAnswered(200, () => ask().put(`/envs/${env}/autoscaling/groups/${member}`, SHORT));
      await eventually(async () => (await limited()) === 'False Unlimited ', 'it may grow again');
    });

    it('grows for a claim that finds no instance, and shrinks once it is unused', async () => {
      const claimed = await untilAnswered(201, () =>
        ask().post('/sandboxes', { poolName: member }),
      );
      await eventually(
        async () =>
          (await decisions()).some(
            ({ cause, seen }) => cause === 'demand' && seen.pendingRequests > 0,
          ),
        'it says why it grew',
      );
      expect(Number(await replicas())).to.be.within(1, 3);

      await untilAnswered(200, () =>
        ask().delete(`/sandboxes/${claimed.json.sandbox?.['sandboxId']}`),
      );
      await eventually(async () => (await replicas()) === 0, 'it is as small as it was');
      const isGone = ({ cause, changes }: Decision): boolean =>
        cause === 'surplus' && changes.some(({ to, outcome }) => to === 0 && outcome === 'done');
      await eventually(async () => (await decisions()).some(isGone), 'it says why');
    });
  });
};
