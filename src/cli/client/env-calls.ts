import type { Call, CallOptions } from './operation-request.ts';
import type {
  AddMemberRequest,
  AutoscalingGroupChange,
  AutoscalingGroupDeletion,
  AutoscalingGroupEnvelope,
  AutoscalingGroupList,
  CreateEnvRequest,
  Env,
  EnvChange,
  EnvDeletion,
  EnvEnvelope,
  EnvFilter,
  EnvReplacement,
  MemberChange,
  MemberEnvelope,
  MemberList,
  NarrowEnv,
  Page,
  ScalingDecisionList,
} from './wire.ts';

/**
 * The operations of envs, their members and their autoscaling groups, as SandpoolClient has the
 * others.
 */
export class EnvCalls {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  async create(request: CreateEnvRequest, options?: CallOptions): Promise<EnvEnvelope> {
    return await this.#call('createEnv', { body: request }, options);
  }

  async get(name: string, options?: CallOptions): Promise<EnvEnvelope> {
    return await this.#call('getEnv', { params: { name } }, options);
  }

  async list(filter: EnvFilter = {}, options?: CallOptions): Promise<Page<Env>> {
    return await this.#call('listEnvs', { query: filter }, options);
  }

  /** The whole shell: what is left out is away. */
  async replace(name: string, shell: EnvReplacement, options?: CallOptions): Promise<EnvEnvelope> {
    return await this.#call('replaceEnv', { params: { name }, body: shell }, options);
  }

  /** A merge patch: what is left out stays, null takes away. */
  async patch(name: string, change: EnvChange, options?: CallOptions): Promise<EnvEnvelope> {
    return await this.#call('patchEnv', { params: { name }, body: change }, options);
  }

  /** With `force` its running sandboxes end too; else it is refused while any runs. */
  async delete(
    name: string,
    { force = false, ...options }: CallOptions & { readonly force?: boolean } = {},
  ): Promise<EnvDeletion> {
    return await this.#call(
      'deleteEnv',
      { params: { name }, query: force ? { force } : {} },
      options,
    );
  }

  /** Renders every member anew. */
  async sync(name: string, options?: CallOptions): Promise<NarrowEnv> {
    return (await this.#call('syncEnv', { params: { name } }, options)).env;
  }

  async members(name: string, options?: CallOptions): Promise<MemberList> {
    return await this.#call('listMembers', { params: { name } }, options);
  }

  async addMember(
    name: string,
    request: AddMemberRequest,
    options?: CallOptions,
  ): Promise<MemberEnvelope> {
    return await this.#call('addMember', { params: { name }, body: request }, options);
  }

  async updateMember(
    name: string,
    pool: string,
    change: MemberChange,
    options?: CallOptions,
  ): Promise<MemberEnvelope> {
    return await this.#call('updateMember', { params: { name, pool }, body: change }, options);
  }

  /** With `force` its running sandboxes end too. */
  async removeMember(
    name: string,
    pool: string,
    { force = false, ...options }: CallOptions & { readonly force?: boolean } = {},
  ): Promise<EnvDeletion> {
    return await this.#call(
      'deleteMember',
      { params: { name, pool }, query: force ? { force } : {} },
      options,
    );
  }

  async groups(name: string, options?: CallOptions): Promise<AutoscalingGroupList> {
    return await this.#call('listGroups', { params: { name } }, options);
  }

  async group(
    name: string,
    groupName: string,
    options?: CallOptions,
  ): Promise<AutoscalingGroupEnvelope> {
    return await this.#call('getGroup', { params: { name, groupName } }, options);
  }

  /** Changes a group; fields that are left out stay as they are. */
  async setGroup(
    name: string,
    groupName: string,
    change: AutoscalingGroupChange,
    options?: CallOptions,
  ): Promise<AutoscalingGroupEnvelope> {
    return await this.#call('updateGroup', { params: { name, groupName }, body: change }, options);
  }

  /** Its members keep their size. */
  async deleteGroup(
    name: string,
    groupName: string,
    options?: CallOptions,
  ): Promise<AutoscalingGroupDeletion> {
    return await this.#call('deleteGroup', { params: { name, groupName } }, options);
  }

  /** Lists what the group decided lately, the newest first. */
  async decisions(
    name: string,
    groupName: string,
    options?: CallOptions,
  ): Promise<ScalingDecisionList> {
    return await this.#call('listDecisions', { params: { name, groupName } }, options);
  }
}
