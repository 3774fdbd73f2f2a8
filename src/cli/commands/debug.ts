import type { Command } from 'commander';
import type { ActorKind } from '../../client/wire.ts';
import type { ServiceAction } from '../action.ts';
import { actorText } from '../actor-words.ts';
import { addConnectionOptions } from '../connection.ts';
import { group, leaf } from '../leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../output.ts';

/** `debug sandbox|pool|member|group`. */
export const debugGroup = (action: ServiceAction): Command => group('debug', 'Looks into a sandbox, a pool, or a member or group of an env, for an admin', [
  actorLeaf(action, { kind: 'sandbox', operands: '<sandbox>', of: 'a sandbox', example: '"$SANDBOX"' }),
  actorLeaf(action, { kind: 'pool', operands: '<pool>', of: 'a pool, by its name or NAMESPACE/NAME', example: 'team-blue/shells' }),
  actorLeaf(action, { kind: 'member', operands: '<env> <member>', of: 'a member of an env, which may be NAMESPACE/ENV', example: 'default default' }),
  actorLeaf(action, { kind: 'group', operands: '<env> <group>', of: 'an autoscaling group of an env, which may be NAMESPACE/ENV', example: 'default default' }),
]);

const actorLeaf = (action: ServiceAction, { kind, operands, of, example }: { readonly kind: ActorKind; readonly operands: string; readonly of: string; readonly example: string }): Command =>
  addOutputOption(addConnectionOptions(leaf({
    usage: `${kind} ${operands}`,
    summary: `Shows where ${of}, stands in its state chart and why, what it waits for, and how it came there.`,
    examples: [`sandpool debug ${kind} ${example} --admin`],
  })))
    .action(action(async (api, context, names, options: OutputOptions) => {
      const key = names.filter((name) => typeof name === 'string').join('/');
      const [actor, machine] = await Promise.all([api.debug.actor(kind, key), api.debug.machine(kind)]);
      await show(context, options, { value: actor, text: () => actorText(actor, machine) });
    }));
