import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessesNotProvided,
  ProcessGone,
  ProcessRefused,
} from '../../contracts/processes.ts';
import { ContainerGone, InstanceGone, type SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { ProcessFact } from '../../model/process.ts';
import { tooManyProcesses } from '../../model/limit-refusals.ts';
import {
  containerNotRunning,
  inputClosed,
  invalidArgument,
  processEnded,
  processesNotProvided,
  processNotFound,
  sandboxNotFound,
  unavailable,
} from '../../model/refusals.ts';

export const processRefusalOf = (error: unknown): unknown => {
  if (error instanceof ProcessGone) return processNotFound();
  if (error instanceof ProcessEnded) return processEnded();
  if (error instanceof InputClosed) return inputClosed(error.message);
  if (error instanceof ProcessRefused) return invalidArgument(error.field, error.message);
  if (error instanceof ProcessesFull)
    return error.of === 'machine' ? unavailable(error.message) : tooManyProcesses(error.message);
  if (error instanceof ProcessesNotProvided) return processesNotProvided(error.message);
  if (error instanceof InstanceGone) return sandboxNotFound();
  if (error instanceof ContainerGone) return containerNotRunning(undefined);
  return error;
};

export const asked = async <T>(call: Promise<T>): Promise<T> => {
  try {
    return await call;
  } catch (error) {
    throw processRefusalOf(error);
  }
};

export const foundProcess = async (
  driver: Pick<SandboxDriver, 'processes'>,
  sandboxId: string,
  processId: string,
): Promise<ProcessFact> => {
  const fact = await asked(driver.processes.find(sandboxId, processId));
  if (!fact) throw processNotFound();
  return fact;
};
