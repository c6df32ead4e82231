-- How often the process of a job has ended while it ran, which is no attempt of the job's own.
ALTER TABLE jobs ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0;
